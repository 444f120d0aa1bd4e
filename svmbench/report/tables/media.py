"""Sentences beside tables, which each medium formats and escapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from svmbench.base import escape


@dataclass(frozen=True)
class Strong:
    """An emphasised part of a sentence."""

    text: str


@dataclass(frozen=True)
class Code:
    """A name from code in a sentence."""

    text: str


#: A sentence in parts, which may contain untrusted text.
Sentence = Sequence[str | Strong | Code]


@dataclass(frozen=True)
class Medium:
    """The format of text in one medium; each function also escapes its text.

    Attributes
    ----------
    text, strong, code : callable
        Functions that format plain text, emphasised text, and code.
    """

    text: Callable[[object], str]
    strong: Callable[[object], str]
    code: Callable[[object], str]

    def spell(self, sentence: Sentence) -> str:
        """Format a sentence for the medium."""
        return "".join(self._spell(piece) for piece in sentence)

    def _spell(self, piece: str | Strong | Code) -> str:
        if isinstance(piece, Strong):
            return self.strong(piece.text)
        return self.code(piece.text) if isinstance(piece, Code) else self.text(piece)


MARKDOWN = Medium(
    escape.markdown, lambda text: f"**{escape.markdown(text)}**", escape.markdown_code
)
TERMINAL = Medium(escape.line, escape.line, escape.line)
HTML = Medium(
    escape.html,
    lambda text: f"<strong>{escape.html(text)}</strong>",
    lambda text: f"<code>{escape.html(text)}</code>",
)
LATEX = Medium(
    escape.latex,
    lambda text: rf"\textbf{{{escape.latex(text)}}}",
    lambda text: rf"\texttt{{{escape.latex(text)}}}",
)
