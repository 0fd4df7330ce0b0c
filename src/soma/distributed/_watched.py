"""A worker's side of audits: an outpost for each, which hears what `_host.py` does."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from torch import Tensor
from torch.optim import Optimizer

from soma.audit import ChannelConfig, InsideByNode, Outpost
from soma.core import NodeId
from soma.distributed._messages import Heard, Turn
from soma.health import Measurements


class Outposts:
    """The audits of one session."""

    def __init__(self) -> None:
        self._by_audit: dict[str, Outpost] = {}

    def opened(self, audit: str, inside: InsideByNode, channels: ChannelConfig | None) -> Outpost:
        """Return the outpost of an audit, a new one at first."""
        if audit not in self._by_audit:
            self._by_audit[audit] = Outpost(inside, channels)
        return self._by_audit[audit]

    @contextmanager
    def hearing(
        self,
        node: NodeId,
        turns: Sequence[Turn],
        run: Callable[[object], object],
        x: object,
    ) -> Iterator[Callable[[object], None]]:
        """Have the audits whose turn it is hear of a forward inside, and the others nothing.

        Give what takes the node's output.
        """
        present = self._by_audit
        if not present:
            yield _nothing
            return
        listening = [present[one.audit] for one in turns if one.audit in present]
        with ExitStack() as stack:
            for outpost in present.values():
                if outpost not in listening:
                    stack.enter_context(outpost.deaf())
            for turn in turns:
                if turn.audit in present:
                    outpost = present[turn.audit]
                    outpost.turn_to(turn.step, whole=turn.whole, every=turn.every)
                    outpost.begins(node, run, x)

            def answered(output: object) -> None:
                for outpost in listening:
                    outpost.answered(node, output)

            yield answered

    def gradients_came(self, audits: Sequence[str], gradients: Mapping[Tensor, Tensor]) -> None:
        """Have audits take the gradients of a step."""
        for outpost in self._of(audits):
            outpost.gradients_came(gradients)

    def follow(self, audits: Sequence[str], optimizer: Optimizer) -> None:
        """Have audits hear of an optimizer's steps."""
        for outpost in self._of(audits):
            outpost.follow(optimizer)

    def stepped(self, audits: Sequence[str]) -> dict[str, Heard]:
        """End the step of audits; return what each has heard of it."""
        return {one: Heard(*self._by_audit[one].stepped()) for one in audits if one in self}

    def measured(self, audit: str, *, is_over: bool) -> Measurements:
        """Return what an audit has measured since this was last asked."""
        outpost = self._by_audit[audit]
        if is_over:
            del self._by_audit[audit]
            outpost.close()
        return outpost.measured()

    def __contains__(self, audit: str) -> bool:
        return audit in self._by_audit

    def _of(self, audits: Sequence[str]) -> list[Outpost]:
        return [self._by_audit[one] for one in audits if one in self]


def _nothing(output: object) -> None:
    """Hear nothing."""
