"""Sentences that stand beside tables, said once and spelt for each medium that shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from svmbench.base import escape


@dataclass(frozen=True)
class Strong:
    """What of a sentence stands out."""

    text: str


@dataclass(frozen=True)
class Code:
    """What of a sentence is a name that a program knows."""

    text: str


#: A sentence in pieces, any of which may hold text of unknown origin.
Sentence = Sequence[str | Strong | Code]


@dataclass(frozen=True)
class Medium:
    """How text reads in one medium; each function escapes it there.

    Attributes
    ----------
    text, strong, code : callable
        From any text to how it is spelt plainly, set off, and as a program's name.
    """

    text: Callable[[object], str]
    strong: Callable[[object], str]
    code: Callable[[object], str]

    def spell(self, sentence: Sentence) -> str:
        """Return a sentence as the medium has it."""
        return "".join(self._spell(piece) for piece in sentence)

    def _spell(self, piece: str | Strong | Code) -> str:
        if isinstance(piece, Strong):
            return self.strong(piece.text)
        return self.code(piece.text) if isinstance(piece, Code) else self.text(piece)


MARKDOWN = Medium(
    escape.markdown, lambda text: f"**{escape.markdown(text)}**", escape.markdown_code
)
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
