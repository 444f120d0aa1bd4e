"""The mistakes of a config: each once, with its place."""

from __future__ import annotations

from collections.abc import Iterator

from svmbench.base.errors import suggestion
from svmbench.base.escape import line
from svmbench.base.validation_messages import shown
from svmbench.experiment.config.yaml_source import ConfigPlace, YamlSource


class Findings:
    """The mistakes of one config, in the order of the places where they stand.

    Parameters
    ----------
    source : YamlSource
        Where each value stands, in its file or on the command line.
    """

    def __init__(self, source: YamlSource) -> None:
        self.source = source
        self._said: dict[tuple[ConfigPlace, str], str] = {}
        self._places: set[ConfigPlace] = set()
        self._of_the_command: list[str] = []

    def __iter__(self) -> Iterator[str]:
        """Go over the sentences, each with its place before it, in the order of their places."""
        of_values = {(place, ""): said for place, said in self.source.problems.items()}
        said = of_values | self._said
        order = sorted(said, key=lambda key: self.source.position(key[0]))
        return iter([*self._of_the_command, *(said[key] for key in order)])

    def __len__(self) -> int:
        return len(self._of_the_command) + len(self._said) + len(self.source.problems)

    def of_the_command(self, said: str) -> None:
        """Add what is wrong with a word of the command line, which therefore stands nowhere."""
        self._of_the_command.append(said)

    def form(self, place: ConfigPlace, said: str, named: ConfigPlace | None = None) -> None:
        """Add what is wrong with a value itself, unless something is said of that one already."""
        if place not in self.source.problems and place not in self._places:
            self.add(place, said, place if named is None else named)

    def add(self, place: ConfigPlace, said: str, named: ConfigPlace) -> None:
        """Add a mistake.

        Parameters
        ----------
        place : tuple
            Where one has to look for it.
        said : str
            The sentence.
        named : tuple
            What it is about, as the sentence's subject.
        """
        about = f"{line(dotted(named), 200)}: " if named else ""
        said = line(said, 800)
        self._places.add(place)
        self._said.setdefault((place, said), f"{self.source.where(place)}: {about}{said}")

    def unknown(
        self, place: ConfigPlace, what: str, name: str, known: list[str], named: ConfigPlace
    ) -> None:
        """Add a name that stands for nothing, with the nearest that stands for something."""
        self.add(place, f"{what} {shown(name)}{suggestion(name, known)}", named)


def dotted(place: ConfigPlace) -> str:
    """Return a place as a person writes it: ``blocks[0].scaling``."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
