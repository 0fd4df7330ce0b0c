"""`soma.explain`: what a flag means."""

from soma.errors import UnknownFlag, did_you_mean, listing
from soma.health._explanation import Explanation
from soma.health.rules import EXPLANATIONS


def explain(flag: str) -> Explanation:
    """Return what is measured for a flag, its rule, defaults, source, and what helps.

    >>> import soma
    >>> soma.explain("DEAD_CHANNELS(4)").title
    'some of its channels never fire'

    Raises:
        UnknownFlag: no rule gives this flag.
    """
    known = {one.flag: one for one in EXPLANATIONS}
    name = str(flag).partition("(")[0].strip().upper()
    if name not in known:
        raise UnknownFlag(
            f"no rule gives the flag {flag!r}; there are {listing(known, most=30)}."
            f"{did_you_mean(name, known)}"
        )
    return known[name]


def flags() -> tuple[str, ...]:
    """Return the names of all flags, in the order of their rules."""
    return tuple(one.flag for one in EXPLANATIONS)
