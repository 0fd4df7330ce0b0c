"""Steps in topological order -> a tree of sequences and parallels.

A graph is cut where everything before is read, at any distance, by everything behind;
what falls apart is parallel; what does neither goes level by level. Every pass is linear,
and the depth is bounded, so the whole is linear too. `_stretch.py` comes next.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from soma.compiler._parts import Empty, Execute, Parallel, Part, Sequence

_DEEPEST = 25  # forks nested deeper than this run level by level


@dataclass(frozen=True, slots=True)
class _Block:
    """Some steps in topological order, and which of them each one reads."""

    steps: list[Execute]
    reads: list[list[int]]

    def within(self, members: Iterable[int]) -> "_Block":
        """Return the block of some members; what they read outside is left out."""
        place = {member: index for index, member in enumerate(members)}
        return _Block(
            [self.steps[member] for member in place],
            [[place[one] for one in self.reads[member] if one in place] for member in place],
        )


def arranged(steps: list[Execute]) -> Part:
    """Return the tree that runs `steps`, which are in topological order."""
    if len(steps) < 2:
        return steps[0] if steps else Empty()
    place = {step.node: index for index, step in enumerate(steps)}
    block = _Block(steps, [[place[one] for one in step.inputs] for step in steps])
    pieces = _components(block)
    return _connected(block, 0) if len(pieces) == 1 else _parallel(block, pieces, 0)


def _connected(block: _Block, depth: int) -> Sequence:
    """Cut a block that hangs together, and take apart what lies between two cuts."""
    segments = _segments(block)
    if len(segments) == 1 or depth == _DEEPEST:
        return _by_level(block)
    parts: list[Part] = []
    for segment in segments:
        if len(segment) == 1:
            parts.append(block.steps[segment[0]])
            continue
        inner = block.within(segment)
        pieces = _components(inner)
        if len(pieces) == 1:
            parts += _by_level(inner).parts
        else:
            parts.append(_parallel(inner, pieces, depth + 1))
    return Sequence(tuple(parts))


def _parallel(block: _Block, pieces: list[list[int]], depth: int) -> Parallel:
    return Parallel(
        tuple(
            _connected(block.within(piece), depth) if len(piece) > 1 else block.steps[piece[0]]
            for piece in pieces
        )
    )


def _components(block: _Block) -> list[list[int]]:
    """Group the steps that are linked, whichever way the links point."""
    leader = list(range(len(block.reads)))

    def leading(one: int) -> int:
        while leader[one] != one:
            leader[one] = one = leader[leader[one]]
        return one

    for step, sources in enumerate(block.reads):
        for source in sources:
            first, second = leading(source), leading(step)
            leader[max(first, second)] = min(first, second)
    groups: dict[int, list[int]] = {}
    for step in range(len(leader)):
        groups.setdefault(leading(step), []).append(step)
    return list(groups.values())


def _segments(block: _Block) -> list[range]:
    """Cut where every step that nobody before has read is read by every first step behind.

    Such a place lies at one point of any topological order. Between steps `i` and `i + 1`,
    `open_ends` steps before have no reader before, `fresh` steps behind read nothing behind;
    it is a cut when these are linked each to each.
    """
    count = len(block.reads)
    first_reader = [count] * count
    last_source = [-1] * count
    for step, sources in enumerate(block.reads):
        last_source[step] = max(sources, default=-1)
        for source in sources:
            first_reader[source] = min(first_reader[source], step)

    # Each line below adds one over a stretch of places: +1 where it begins, -1 where it ends.
    open_ends, fresh, links = ([0] * (count + 1) for _ in range(3))
    for step, sources in enumerate(block.reads):
        begin = max(last_source[step], 0)
        open_ends[step] += 1
        open_ends[first_reader[step]] -= 1
        fresh[begin] += 1
        fresh[step] -= 1
        for source in sources:
            if last_source[step] < first_reader[source]:
                links[begin] += 1
                links[first_reader[source]] -= 1

    places = zip(accumulate(open_ends), accumulate(fresh), accumulate(links), strict=True)
    cuts = [
        place + 1
        for place, (ends, starts, linked) in enumerate(places)
        if place < count - 1 and linked == ends * starts
    ]
    return [range(begin, end) for begin, end in zip([0, *cuts], [*cuts, count], strict=True)]


def _by_level(block: _Block) -> Sequence:
    """Run together what is equally far from the start, counted along the longest path."""
    levels: list[list[Execute]] = []
    level_of: list[int] = []
    for step, sources in zip(block.steps, block.reads, strict=True):
        level = 1 + max((level_of[source] for source in sources), default=-1)
        level_of.append(level)
        if level == len(levels):
            levels.append([])
        levels[level].append(step)
    return Sequence(tuple(Parallel(tuple(one)) if len(one) > 1 else one[0] for one in levels))
