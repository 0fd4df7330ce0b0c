"""Seeds the global random generators around one node's turn, and puts them back after it.

Every node that draws gets a seed of its own, made from the run's seed, its class and its
number among the nodes of that class: names of nodes can change without changing what is
drawn, and two nodes of one class do not draw the same numbers.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import string_at
from hashlib import blake2b
from threading import RLock
from typing import Any

from soma._extras import loaded
from soma.core import NodeId, Topology

# The generators are the process's own, so only one seeded node at a time may draw from them.
_DRAWING = RLock()

_TWISTER = 4 * 624 + 4  # bytes of its words, and of its place in them


def drawing() -> bool:
    """Whether this thread is inside `seeded` or `generators_kept`, where no other one can draw."""
    return _DRAWING._is_owned()  # type: ignore[attr-defined, no-any-return]


def derived_seed(seed: int, class_name: str, number: int) -> int:
    """Return a 32-bit seed for the `number`-th drawing node of a class."""
    text = f"{seed}\0{class_name}\0{number}".encode()
    return int.from_bytes(blake2b(text, digest_size=4).digest())


class Seeded:
    """A function that draws the same numbers at each call."""

    __slots__ = ("function", "seed")

    def __init__(self, function: Callable[[object], object], seed: int) -> None:
        self.function = function
        self.seed = seed

    def __call__(self, x: object) -> object:
        while True:
            libraries = _libraries()
            with seeded(self.seed):
                answer = self.function(x)
            # A library that was first imported in there was not seeded when it drew.
            if _libraries() == libraries:
                return answer


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from generators seeded with `seed` inside, and leave them as they were."""
    with generators_kept():
        random.seed(seed)
        if (numpy := loaded("numpy")) is not None:
            numpy.random.seed(seed % 2**32)
        if (torch := loaded("torch")) is not None:
            torch.manual_seed(seed)
        yield


class Kept:
    """Whether the generators are put back at the end; code inside may set it to False."""

    __slots__ = ("restores",)

    def __init__(self) -> None:
        self.restores = True


@contextmanager
def generators_kept() -> Iterator[Kept]:
    """Put the generators of Python, NumPy and torch back to where they are now."""
    with _DRAWING:
        python = random.getstate()
        numpy, torch = loaded("numpy"), loaded("torch")
        array_state = numpy.random.get_state() if numpy is not None else None
        tensor_state = torch.get_rng_state() if torch is not None else None
        on_gpu = torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
        gpu_states = torch.cuda.get_rng_state_all() if torch is not None and on_gpu else []
        kept = Kept()
        try:
            yield kept
        finally:
            if kept.restores:
                random.setstate(python)
                if numpy is not None:
                    numpy.random.set_state(array_state)
                if torch is not None:
                    torch.set_rng_state(tensor_state)
                    if on_gpu:
                        torch.cuda.set_rng_state_all(gpu_states)


def _libraries() -> tuple[bool, bool]:
    return loaded("numpy") is not None, loaded("torch") is not None


def generator_marks() -> tuple[object, ...]:
    """Return the states of the global generators, to compare before and after a call."""
    numpy, torch = loaded("numpy"), loaded("torch")
    return (
        random.getstate(),
        None if numpy is None else _array_mark(numpy.random),
        None if torch is None else torch.get_rng_state().numpy().tobytes(),
    )


def _array_mark(random: Any) -> object:
    """Return where the global generator of NumPy stands, as something to compare."""
    generator = random.get_bit_generator()
    if type(generator) is not random.MT19937:
        return repr(generator.state)
    # NumPy hands out the 624 words one by one; copying their memory is 300 times as fast.
    return string_at(generator.ctypes.state_address, _TWISTER)


def drawing_numbers(topology: Topology) -> dict[NodeId, int]:
    """Number the nodes that draw among those of their class, in the whole graph."""
    seen: Counter[str] = Counter()
    numbers = {}
    for node in topology:
        if not node.filter._deterministic:
            name = type(node.filter).__qualname__
            numbers[node.id] = seen[name]
            seen[name] += 1
    return numbers
