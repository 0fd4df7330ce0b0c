"""Where the words of blocks stand: on a block, or beside it where nothing else is."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from soma.draw import text_width
from soma.viz._chart import Block, Blocks
from soma.viz._chart_layout import SMALL

ASIDE = " · "  # what follows the last of them is left out first
_AROUND = 8.0  # pixels that a text takes beside itself

Side = Literal["on", "after", "before"]


class Word(NamedTuple):
    """The words of one block, which have room there."""

    block: Block
    group: Blocks
    text: str
    side: Side


def block_words(
    groups: Iterable[Blocks], ends: Callable[[Block], tuple[float, float]], right: float
) -> Iterator[Word]:
    """Return the words that have room, lane by lane.

    Args:
        ends: where a block begins and ends, in pixels from the left end of the plot.
        right: where the plot ends.
    """
    lanes: dict[int, list[tuple[float, float, Block, Blocks]]] = {}
    for group in groups:
        for one in group.blocks:
            lanes.setdefault(one.lane, []).append((*ends(one), one, group))
    for blocks in lanes.values():
        blocks.sort(key=lambda block: block[:2])
        starts = [start for start, *_ in blocks[1:]]
        free = 0.0  # from here on nothing stands on the left
        for (start, end, one, group), after in zip(blocks, [*starts, right], strict=True):
            rooms: dict[Side, float] = {
                "on": min(end, after, right) - start,
                "after": min(after, right) - end,
                "before": start - free,
            }
            word = next(_fitting(one, group, rooms), None)
            if word is not None:
                yield word
            taken = text_width(word.text, SMALL) + _AROUND if word and word.side == "after" else 0.0
            free = max(free, end + taken)


def _fitting(block: Block, group: Blocks, rooms: Mapping[Side, float]) -> Iterator[Word]:
    """Return the ways to write a block's words, the best first."""
    parts = block.text.split(ASIDE)
    for text in (ASIDE.join(parts[:count]) for count in range(len(parts), 0, -1)):
        wide = text_width(text, SMALL) + _AROUND
        for side, room in rooms.items():
            if text and wide <= room:
                yield Word(block, group, text, side)
