"""The scope of one training step."""

from collections.abc import Callable
from typing import Self


class Context:
    """What `with g.context() as ctx` gives; one object serves every step of a graph.

    It notes whether it was entered in eval: a forward in there is a forgotten `g.train()`.
    """

    __slots__ = ("begins", "blocks_inference", "opened_in_eval")

    def __init__(self) -> None:
        self.opened_in_eval = False
        self.blocks_inference = False
        self.begins: Callable[[], None] | None = None  # where nodes are in other processes

    def __enter__(self) -> Self:
        self.blocks_inference = self.opened_in_eval
        if self.begins is not None:
            self.begins()
        return self

    def __exit__(self, *_: object) -> None:
        self.blocks_inference = False
