"""What is written down of one traced turn: steps, edges, and which step each tensor comes from.

No tensor is kept alive: they are known by weak references, which also tell an old tensor from
a new one at the same address.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from threading import get_ident
from weakref import ref

import numpy as np
from torch import Tensor, nn

from soma.audit._flow._values import is_foreign, memory
from soma.core import FlowKind

MOST_STEPS = 2_000


class Step:
    """Something that ran; inside a module that is shown as one box, it is `part_of` the box."""

    __slots__ = ("key", "kind", "label", "module", "part_of", "path", "shape", "weights")

    def __init__(self, kind: FlowKind, key: Hashable, label: str, path: str) -> None:
        self.kind: FlowKind = kind
        self.key = key  # the same in every turn in which it runs
        self.label = label
        self.path = path
        self.shape: tuple[int, ...] | None = None
        self.module: nn.Module | None = None
        self.weights: dict[str, nn.Parameter] = {}  # that an operation reads
        self.part_of: Step | None = None

    def shown(self) -> "Step":
        """Return this step, or the box that it is shown as."""
        step = self
        while step.part_of is not None:
            step = step.part_of
        return step


# Where a value comes from: several steps where parts of it were written one by one. With each,
# what has stopped the gradient since.
Origins = tuple[tuple[Step, str | None], ...]
Edge = tuple[Step, Step, str | None]


class Record:
    """The steps and edges of one turn, in the order in which they came about."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.paths = {
            id(part): path
            for path, part in module.named_modules()
            if "parametrizations" not in path.split(".")
        }
        self.weights = {id(one): (name, one) for name, one in module.named_parameters()}
        self.buffers = {id(one) for one in module.buffers()}
        self.steps: list[Step] = []
        self.edges: list[Edge] = []
        self.numpy: Step | None = None
        self.given_arrays: Origins = ()  # the input, where it has arrays in it
        self.written_state: list[int] = []  # weights and buffers, by their ids
        self.full = False
        self.thread = get_ident()
        self._origins: dict[int, tuple[ref[object], Origins, int | None]] = {}
        self._seen: Counter[Hashable] = Counter()

    def is_state(self, value: object) -> bool:
        """Whether a tensor is a weight or a buffer of the module."""
        return id(value) in self.weights or id(value) in self.buffers

    def add(self, step: Step) -> None:
        """Write a step down, while there is room."""
        if len(self.steps) >= MOST_STEPS:
            self.full = True
        else:
            self.steps.append(step)

    def connect(self, origins: Origins, target: Step) -> None:
        """Write down that values flow into `target`."""
        self.edges += [(source, target, cut) for source, cut in origins]

    def nth(self, key: Hashable) -> int:
        """Count how often `key` has been seen in this turn, this time included."""
        self._seen[key] += 1
        return self._seen[key]

    def origins(self, value: Tensor | np.ndarray) -> Origins:
        """Return where a value comes from; nothing for a constant."""
        known = self._origins.get(id(value))
        if known is not None and known[0]() is value:
            return known[1]
        if isinstance(value, np.ndarray):
            base = value.base
            return self.origins(base) if isinstance(base, np.ndarray) else self.foreign()
        has_arrays = self.numpy is not None or self.given_arrays
        if has_arrays and value.is_leaf and not self.is_state(value) and is_foreign(value):
            return self.foreign()  # `from_numpy` runs past the mode
        return ()

    def foreign(self) -> Origins:
        """Return where an array may come from that was made out of sight."""
        return self.given_arrays + (() if self.numpy is None else ((self.numpy, None),))

    def label(self, value: Tensor | np.ndarray, origins: Origins) -> None:
        """Write down where a value comes from."""
        place = memory(value) if isinstance(value, Tensor) else None
        self._origins[id(value)] = (ref(value), origins, place)

    def forget(self, ids: Iterable[int]) -> None:
        """Take back what was written of some values."""
        for one in ids:
            self._origins.pop(one, None)

    def overlapping(self, tensor: Tensor) -> list[Tensor]:
        """Return the other tensors that look at the memory of this one."""
        place = memory(tensor)
        found: list[Tensor] = []
        if place is not None:
            for known, _, there in self._origins.values():
                other = known() if there == place else None
                if isinstance(other, Tensor) and other is not tensor:
                    found.append(other)
        base = tensor._base
        if base is not None and all(base is not one for one in found):
            found.append(base)
        return found
