"""A node reads another one once."""

from collections import Counter

from soma.compiler._facts import Facts
from soma.core import Diagnostic, Label


def repeated_links(facts: Facts) -> list[Diagnostic]:
    """An error for each link that is declared more than once."""
    return [
        Diagnostic(
            level="error",
            code="repeated-link",
            node=target,
            message=f"The link `{source}` → `{target}` is declared {times} times; "
            "a node reads another one once",
            labels=(Label(node=source, role="fault"), Label(node=target, role="fault")),
            help="Take out the repetition. What a node gets holds each predecessor once.",
        )
        for (source, target), times in Counter(facts.topology.links).items()
        if times > 1
    ]
