"""How bad each flag is: which are told first, which are errors, which are no fault at all."""

WORST_FIRST = (
    "NAN", "INF", "EXPLODING", "NO_GRAD", "UNUSED", "DEAD", "STALE_GRAD", "LR_HIGH", "VANISHING",
    "FROZEN", "COLLAPSE", "LEAKAGE", "SATURATED", "IGNORED_CHANNELS", "DEAD_CHANNELS", "LR_LOW",
    "UNOBSERVED", "NO_DATA",
)  # fmt: skip
ERRORS = frozenset({"NAN", "INF", "EXPLODING", "NO_GRAD", "DEAD"})  # all other faults are warnings
NEUTRAL = frozenset({"UNOBSERVED", "NO_DATA"})  # flags that tell of no fault
