"""What `soma.explain` says about a flag."""

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from soma.health._thresholds import Thresholds

_WIDTH = 88


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One flag: what is measured, where the line is drawn, who found it, what helps."""

    flag: str
    title: str  # ends "`Linear`: ...", as the head of a finding does
    measured: str
    rule: str
    thresholds: tuple[str, ...]
    source: str
    helps: tuple[str, ...]

    @property
    def defaults(self) -> dict[str, float]:
        """The thresholds of the rule, by name."""
        standard = Thresholds()
        return {name: getattr(standard, name) for name in self.thresholds}

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "thresholds": self.defaults, "helps": list(self.helps)}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.flag}: {self.title}"
        for head, text in (
            ("What is measured", self.measured),
            ("The rule", self.rule),
            ("Where it is from", self.source),
        ):
            yield from ("", head, *_indented(text))
        if self.thresholds:
            yield from ("", "Thresholds, all of them ratios")
            width = max(map(len, self.thresholds))
            yield from (f"  {name:{width}} = {value:g}" for name, value in self.defaults.items())
        yield from ("", "What helps")
        for one in self.helps:
            yield from _indented(one, first="  * ", then="    ")


def _indented(text: str, *, first: str = "  ", then: str = "  ") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=then)
