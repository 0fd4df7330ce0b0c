"""Sees that a loss reaches all that came from workers in this step.

torch's distributed backward waits for a gradient for each tensor that was sent to a worker in
its context, and at each worker that it comes to, for one for each answer from there. Where the
loss leaves one out it waits in vain, until a time limit ends it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from soma.core import NodeId
from soma.errors import ModeError, listing
from soma.training import mapped


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a node on a worker: where autograd leaves what was sent, and enters the answer."""

    node: NodeId
    worker: str
    sent: list[Any]
    answer: list[Any]


class Reach:
    """The calls of one context."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def begin(self) -> None:
        """Forget the context before."""
        self._calls = []

    def told(self, node: NodeId, worker: str, sent: object, answer: object) -> None:
        """Hear of a call that autograd may go back through.

        The tensors of an answer come in one message, and a gradient for one of them is enough.
        """
        call = _Call(node, worker, _entries(sent), _entries(answer))
        if call.sent or call.answer:
            self._calls.append(call)

    def check(self, losses: Sequence[Tensor]) -> None:
        """See that the losses reach all of them.

        Raises:
            ModeError: some node's answer is in none.
        """
        calls = {entry: call for call in self._calls for entry in call.answer}
        missing = {id(call): call for call in self._calls}
        seen: set[Any] = set()
        ahead = [loss.grad_fn for loss in losses]
        while ahead and missing:
            entry = ahead.pop()
            if entry is None or entry in seen:
                continue
            seen.add(entry)
            call = calls.get(entry)
            if call is not None and missing.pop(id(call), None) is not None:
                ahead += call.sent
            ahead += [one for one, _ in entry.next_functions]
        reached = {call.worker for call in self._calls if id(call) not in missing}
        nodes = dict.fromkeys(
            call.node for call in missing.values() if call.sent or call.worker in reached
        )
        if nodes:
            raise ModeError(
                f"the loss leaves out an answer of {listing(nodes)} in this context, and a "
                "backward over workers would wait for its gradient for ever. Give `backward` all "
                "losses of a context at once; add `0 * output.sum()` for an output of no interest."
            )


def _entries(value: object) -> list[Any]:
    """Return where autograd is with each tensor of a value that asks for a gradient."""
    if type(value) is Tensor:
        return [] if value.grad_fn is None else [value.grad_fn]
    found: list[Any] = []

    def note(one: object) -> object:
        if isinstance(one, Tensor) and one.grad_fn is not None:
            found.append(one.grad_fn)
        return one

    mapped(value, note)
    return found
