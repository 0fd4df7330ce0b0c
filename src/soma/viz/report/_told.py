"""What a report tells of a conversation: a long one loses its middle, a long text too."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from markupsafe import escape

from soma.core import ToolCall
from soma.draw import shortened
from soma.viz._conversation import ConversationEntry

_MOST_CALLS = 24  # of one reply
_MOST_LABELS = 24
_MOST_NAME = 80  # columns
_ROOM = 800_000  # bytes of all of it, on the page and in its data
_EACH = 360  # bytes around one entry, or one call
_COUNTS = (2_000, 1_400, 1_000, 700, 400, 200, 100)  # entries
_LENGTHS = (40_000, 16_000, 6_000, 2_400, 1_000, 400, 160)  # characters of one text
_SHORTEST = 100  # characters, where even the fewest entries are too many


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The entries of a conversation that are in the file, and what is not."""

    entries: tuple[ConversationEntry, ...]
    count: int  # of all that there are
    gap: int | None  # before which of the entries others are left out
    left_out: tuple[str, ...]  # sentences

    @property
    def missing(self) -> int:
        """How many entries are left out."""
        return self.count - len(self.entries)


def told(entries: Sequence[ConversationEntry]) -> Told:
    """Return the beginning and the end of a conversation, its texts cut to what there is room for.

    All that is in it together stays below a megabyte.
    """
    count, length = next(
        (
            (count, length)
            for count in _COUNTS
            for length in _LENGTHS
            if _fits(map(_named, _ends(entries, count)), length)
        ),
        (_COUNTS[-1], _SHORTEST),
    )
    kept = _ends(entries, count)
    named = [*map(_named, kept)]
    shown = tuple(_each_text(entry, lambda text: _cut(text, length)) for entry in named)
    left_out = []
    if len(kept) < len(entries):
        left_out.append(f"{len(kept):,} of {len(entries):,} entries of the conversation are told.")
    if shown != tuple(named):
        left_out.append(f"Texts of the conversation are cut to {length:,} characters.")
    if any(len(entry.calls) > _MOST_CALLS for entry in kept):
        left_out.append(f"Of a reply, {_MOST_CALLS} calls are told.")
    return Told(
        entries=shown,
        count=len(entries),
        gap=None if len(kept) == len(entries) else count // 4,
        left_out=tuple(left_out),
    )


def _ends(entries: Sequence[ConversationEntry], count: int) -> Sequence[ConversationEntry]:
    """Return a quarter of them from the beginning, and the rest from the end."""
    if len(entries) <= count:
        return entries
    return [*entries[: count // 4], *entries[count // 4 - count :]]


def _named(entry: ConversationEntry) -> ConversationEntry:
    """Return an entry with few names in it, all of them short."""
    return replace(
        entry,
        at=_name(entry.at),
        node=_name(entry.node),
        who=_name(entry.who),
        where=None if entry.where is None else _name(entry.where),
        labels=tuple(map(_name, entry.labels[:_MOST_LABELS])),
        calls=tuple(map(_call, entry.calls[:_MOST_CALLS])),
        call=None if entry.call is None else _call(entry.call),
    )


def _call(call: ToolCall) -> ToolCall:
    return replace(call, id=_name(call.id), name=_name(call.name))


def _name(text: str) -> str:
    return shortened(text, _MOST_NAME)


def _each_text(entry: ConversationEntry, change: Callable[[str], str]) -> ConversationEntry:
    def changed(call: ToolCall) -> ToolCall:
        return replace(call, arguments=change(call.arguments))

    return replace(
        entry,
        text=change(entry.text),
        problem=change(entry.problem),
        calls=tuple(map(changed, entry.calls)),
        call=None if entry.call is None else changed(entry.call),
    )


def _fits(entries: Iterable[ConversationEntry], most: int) -> bool:
    room = _ROOM
    for entry in entries:
        room -= _size(entry, most)
        if room < 0:
            return False
    return True


def _size(entry: ConversationEntry, most: int) -> int:
    """Return the bytes that an entry takes when its texts are cut to `most` characters."""
    calls = [*entry.calls, *([] if entry.call is None else [entry.call])]
    names = [entry.at, entry.node, entry.who, *entry.labels, *(call.name for call in calls)]
    texts = [entry.text, entry.problem, *(call.arguments for call in calls)]
    said = sum(map(_bytes, names)) + sum(_bytes(_cut(text, most)) for text in texts)
    return _EACH * (1 + len(entry.calls)) + said


def _bytes(text: str) -> int:
    """Return how long a text is on the page and in its data, with what stands for its signs."""
    return len(escape(text).encode("utf-8", "replace")) + len(json.dumps(text))


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]}\n… {len(text) - most:,} characters left out …\n{text[-tail:]}"
