"""The mistakes of a config, each with its place and without repetitions."""

from __future__ import annotations

from collections.abc import Iterator

from svmbench.base.errors import suggestion
from svmbench.base.escape import line
from svmbench.base.validation_messages import shown
from svmbench.experiment.config.yaml_source import ConfigPlace, YamlSource


class Findings:
    """The mistakes of one config, in the order of their places.

    Parameters
    ----------
    source : YamlSource
        The document, which knows the line and column of each value.
    """

    def __init__(self, source: YamlSource) -> None:
        self.source = source
        self._messages: dict[tuple[ConfigPlace, str], str] = {}
        self._places: set[ConfigPlace] = set()
        self._of_the_command: list[str] = []

    def __iter__(self) -> Iterator[str]:
        """Iterate over the messages, each beginning with its place, in the order of the places."""
        of_values = {(place, ""): message for place, message in self.source.problems.items()}
        messages = of_values | self._messages
        order = sorted(messages, key=lambda key: self.source.position(key[0]))
        return iter([*self._of_the_command, *(messages[key] for key in order)])

    def __len__(self) -> int:
        return len(self._of_the_command) + len(self._messages) + len(self.source.problems)

    def of_the_command(self, message: str) -> None:
        """Add a mistake of the command line, which has no place in the file."""
        self._of_the_command.append(message)

    def add_once(
        self, place: ConfigPlace, message: str, subject: ConfigPlace | None = None
    ) -> None:
        """Add a mistake of a value itself, unless there is one at the same place already."""
        if place not in self.source.problems and place not in self._places:
            self.add(place, message, place if subject is None else subject)

    def add(self, place: ConfigPlace, message: str, subject: ConfigPlace) -> None:
        """Add a mistake.

        Parameters
        ----------
        place : tuple
            The place in the file that the message gives.
        message : str
            A sentence.
        subject : tuple
            The place that the message is about, printed before it; empty for none.
        """
        prefix = f"{line(dotted(subject), 200)}: " if subject else ""
        message = line(message, 800)
        self._places.add(place)
        self._messages.setdefault(
            (place, message), f"{self.source.where(place)}: {prefix}{message}"
        )

    def unknown(
        self, place: ConfigPlace, what: str, name: str, known: list[str], subject: ConfigPlace
    ) -> None:
        """Add an unknown name; the message suggests the most similar known name."""
        self.add(place, f"{what} {shown(name)}{suggestion(name, known)}", subject)


def dotted(place: ConfigPlace) -> str:
    """Return a place as text: ``blocks[0].scaling``."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
