"""A diagnostic as JSON data and back."""

from typing import Literal, cast, get_args

from soma.compiler._json_fields import count, fields, many, require, text, text_or_none
from soma.core import Diagnostic, Label, Level

_LEVELS = get_args(Level)
_ROLES = get_args(Label.__annotations__["role"])


def diagnostic_out(one: Diagnostic) -> dict[str, object]:
    """Return what JSON keeps of a diagnostic: everything."""
    return {
        "level": one.level,
        "code": one.code,
        "node": one.node,
        "message": one.message,
        "position": one.position,
        "drawn": one.drawn,
        "marked": one.marked,
        "remarks": one.remarks,
        "labels": [{"node": label.node, "role": label.role} for label in one.labels],
        "help": one.help,
    }


def diagnostic_in(value: object, where: str) -> Diagnostic:
    """Return the diagnostic that `diagnostic_out` was given."""
    level, code, node, message, position, drawn, marked, remarks, labels, help = fields(
        value,
        where,
        *("level", "code", "node", "message", "position"),
        *("drawn", "marked", "remarks", "labels", "help"),
    )
    require(level in _LEVELS, f"{where}.level", level, f"one of {', '.join(_LEVELS)}")
    names = many(drawn, f"{where}.drawn", text)
    ends = many(marked, f"{where}.marked", count)
    inside = len(ends) == 2 and ends[0] <= ends[1] <= len(names)
    require(inside, f"{where}.marked", marked, "a range of what is drawn")
    return Diagnostic(
        level=cast(Level, level),
        code=text(code, f"{where}.code"),
        node=text_or_none(node, f"{where}.node"),
        message=text(message, f"{where}.message"),
        position=None if position is None else count(position, f"{where}.position"),
        drawn=names,
        marked=(ends[0], ends[1]),
        remarks=many(remarks, f"{where}.remarks", text),
        labels=many(labels, f"{where}.labels", _label_in),
        help=text_or_none(help, f"{where}.help"),
    )


def _label_in(value: object, where: str) -> Label:
    node, role = fields(value, where, "node", "role")
    require(role in _ROLES, f"{where}.role", role, f"one of {', '.join(_ROLES)}")
    return Label(
        node=text(node, f"{where}.node"),
        role=cast(Literal["cut", "cut-off", "learns", "restart", "fault"], role),
    )
