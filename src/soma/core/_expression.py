"""What `>>` and `|` build: a small tree of chains and forks.

Building one is constant work per operator, so long chains stay cheap; the tree is
flattened once, by `_topology.py`, which is the next file on the path.
"""

import re
from collections.abc import Sequence
from inspect import isroutine

from soma.errors import InvalidTarget, NotAFilter

_SPELLED = 50  # words, operators and brackets of a `repr`
_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Composable:
    """Anything that may stand in an expression: a filter, a graph, an expression."""

    __slots__ = ()

    def __rshift__(self, right: object) -> "Chain":
        """`a >> b`: what `a` gives goes into `b`; a fork on the left is a fan-in."""
        return Chain(self, as_composable(right, "on the right of `>>`"))

    def __rrshift__(self, left: object) -> "Chain":
        return Chain(as_composable(left, "on the left of `>>`"), self)

    def __or__(self, right: object) -> "Fork":
        """`a | b`: both get the same input."""
        return Fork((self, as_composable(right, "on the right of `|`")))

    def __ror__(self, left: object) -> "Fork":
        return Fork((as_composable(left, "on the left of `|`"), self))

    def inlined(self) -> "Composable":
        """Return what a topology declares for this part; a graph gives its inside."""
        return self


class Expression(Composable):
    """A filter, a chain or a fork: what can also be connected in words."""

    __slots__ = ()

    def to(self, targets: "object | Sequence[object]") -> "Chain":
        """Say `>>` in words: `a.to([b, c])` is `a >> (b | c)`."""
        if not isinstance(targets, list | tuple):
            return Chain(self, as_composable(targets, "in `to`"))
        if not targets:
            raise NotAFilter("`to` got an empty list; it wants the filters that come next.")
        parts = tuple(as_composable(target, "in `to`") for target in targets)
        return Chain(self, parts[0] if len(parts) == 1 else Fork(parts))

    def collect(self, target: object) -> "Chain":
        """Say a fan-in in words: `a.to([b, c]).collect(d)` is `a >> (b | c) >> d`."""
        return Chain(self, as_composable(target, "in `collect`"))


class Chain(Expression):
    """`left >> right`."""

    __slots__ = ("left", "right")

    def __init__(self, left: Composable, right: Composable) -> None:
        self.left = left
        self.right = right

    def __repr__(self) -> str:
        return _spelled(self)


class Fork(Expression):
    """Several parts side by side."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Composable, ...]) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return _spelled(self)


class Placed(Expression):
    """A filter in an expression, and the worker that it runs on."""

    __slots__ = ("filter", "target")

    def __init__(self, filter: Expression, target: str) -> None:
        self.filter = filter
        self.target = checked_target(target)

    def __repr__(self) -> str:
        return f"{self.filter!r}.at({self.target!r})"


class Foreign(Composable):
    """An estimator of scikit-learn in an expression; the graph makes a filter of it."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return " ".join(repr(self.value).split())


def checked_target(target: object) -> str:
    """Return the name of a worker, if it may be one.

    Raises:
        InvalidTarget: it is none.
    """
    # It names a file and a peer of torch RPC, which takes no other characters.
    if isinstance(target, str) and _TARGET.fullmatch(target):
        return target
    raise InvalidTarget(
        f"a filter was placed at {target!r}; the name of a worker is wanted, as `soma worker "
        "--name` gives it: up to 64 of the letters a to z, digits, `_` and `-`."
    )


def as_composable(value: object, where: str) -> Composable:
    """Return `value` if it may stand in an expression; an estimator comes as a `Foreign`.

    Raises:
        NotAFilter: it is something else; the message says where it stood.
    """
    if isinstance(value, Composable):
        return value
    if isinstance(value, type) and (issubclass(value, Composable) or _is_estimator(value)):
        raise NotAFilter(
            f"the class `{value.__name__}` stands {where}; an instance is wanted. "
            f"Write `{value.__name__}(...)`."
        )
    if _is_estimator(value):
        return Foreign(value)
    raise NotAFilter(
        f"a `{type(value).__name__}` stands {where}; a filter, a graph or an expression of them "
        f"is wanted. {_way_in(value)}"
    )


def _is_estimator(value: object) -> bool:
    """Whether a value looks like an estimator of scikit-learn, which is not imported for this."""
    return not _is_module(value) and hasattr(value, "fit") and hasattr(value, "get_params")


def _is_module(value: object) -> bool:
    return hasattr(value, "parameters") and hasattr(value, "forward")


def _spelled(expression: Expression) -> str:
    """Return an expression as it may be written, from its beginning."""
    words: list[str] = []
    todo: list[object] = [expression]
    while todo:
        if len(words) > _SPELLED:
            return "".join([*words, "…"])
        part = todo.pop()
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, Chain):
            for side in (part.right, " >> ", part.left):
                todo += [")", side, "("] if isinstance(side, Fork) else [side]
        elif isinstance(part, Fork):
            todo += [other for each in reversed(part.parts) for other in (each, " | ")][:-1]
        else:
            words.append(repr(part))
    return "".join(words)


def _way_in(value: object) -> str:
    if _is_module(value):
        return "Return the module from `build_module` of a `soma.DifferentiableFilter`."
    if hasattr(value, "fit") and hasattr(value, "transform"):
        return (
            "Wrap it in a `soma.Filter`: `fit` returns the fitted estimator, `forward` calls its "
            "`transform`."
        )
    if isinstance(value, list | tuple):
        return "Chain its parts with `>>`, or put them side by side with `|`."
    if isroutine(value):
        return "Call it in the `forward` of a `soma.Filter`; in a flow write `soma.flow.Tool(...)`."
    return "Subclass `soma.Filter` to use it here."
