"""A program's side of audits on workers: opens them there, tells them steps, fetches numbers."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count

from soma.core import NodeId
from soma.distributed import _host
from soma.distributed._connection import Connection
from soma.distributed._messages import Heard, Turn
from soma.distributed._stand_in import RemoteModule
from soma.errors import SomaError
from soma.training import Ear

_NUMBERS = count(1)


class Watching:
    """One audit, over all workers of a graph.

    Args:
        ear: the audit.
        among: those that listen to the same graph; this one takes itself out at its end.
    """

    def __init__(self, ear: Ear, among: "list[Watching]") -> None:
        self._ear = ear
        self._among = among
        self.audit = f"audit {next(_NUMBERS)}"
        self._opened: dict[NodeId, RemoteModule] = {}
        self._sessions: dict[NodeId, Connection] = {}

    @property
    def workers(self) -> tuple[str, ...]:
        """The workers where it listens, and that are there."""
        return tuple(self._there())

    def turn(self, module: RemoteModule) -> Turn | None:
        """Return what is to be measured in a forward of a module, and watch it if it is new."""
        turn = self._ear.turn()
        if turn is None:
            return None
        node, connection = module.place.node, module.connection
        if self._sessions.get(node) is not connection:
            given = (self.audit, module.place, self._ear.inside, self._ear.channels)
            units = connection.call(module.worker, _host.watch, *given, node=node)
            self._opened[node], self._sessions[node] = module, connection
            self._ear.met(node, units)
        step, whole, every = turn
        return Turn(self.audit, step, whole, every)

    def heard(self, answers: Sequence[Mapping[str, Heard]]) -> None:
        """Tell the audit of a step that the workers have taken."""
        mine = [one[self.audit] for one in answers if self.audit in one]
        if mine:
            self._ear.heard(
                math.hypot(*(one.norm for one in mine)),
                math.hypot(*(one.norm_at_step for one in mine)),
                sum(one.seconds for one in mine),
            )

    def dropped(self, context: int) -> None:
        """Tell the audit of a context whose gradients no optimizer has used."""
        answers = []
        for worker, connection in self._there().items():
            with suppress(SomaError):  # the next forward tells of a lost worker
                answers.append(connection.call(worker, _host.dropped, context, self.audit))
        self.heard(answers)
        self._ear.dropped()

    def fetch(self) -> None:
        """Have the audit take all that was measured so far."""
        self._bring(is_over=False)

    def close(self) -> None:
        """Fetch the rest, and take the audit off the workers."""
        if self in self._among:
            self._among.remove(self)
            self._bring(is_over=True)
            self._opened.clear()
            self._sessions.clear()

    def _there(self) -> dict[str, Connection]:
        return {
            self._opened[node].worker: connection
            for node, connection in self._sessions.items()
            if connection.lost is None
        }

    def _bring(self, *, is_over: bool) -> None:
        by_worker: dict[tuple[int, str], list[NodeId]] = {}
        for node, module in self._opened.items():
            by_worker.setdefault((id(self._sessions[node]), module.worker), []).append(node)
        for (_, worker), nodes in by_worker.items():
            connection = self._sessions[nodes[0]]
            try:
                found = connection.call(worker, _host.measured, self.audit, is_over)
            except SomaError:
                self._ear.lost(nodes, worker)
            else:
                self._ear.take(found)
