"""What a program and its workers say to each other; torch's RPC carries these as they are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from soma.core import NodeId


class Place(NamedTuple):
    """A node of one of the graphs of a program; several graphs may have nodes of one name."""

    graph: int
    node: NodeId


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception on a worker, as text: its class may not be there on this side."""

    kind: str
    text: str
    trace: str


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter on a worker, without its numbers."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    requires_grad: bool


@dataclass(frozen=True, slots=True)
class Built:
    """A module that was built on a worker, and what it answered to the sample."""

    weights: tuple[Weight, ...]
    built_for: object  # the shape of a sample
    output: object
    generator: Tensor  # torch's, after the weights were drawn


class Turn(NamedTuple):
    """What an audit measures in a forward; the client counts the steps for all."""

    audit: str
    step: int
    whole: bool
    every: int  # one in so many steps is measured whole


@dataclass(frozen=True, slots=True)
class Heard:
    """What an audit hears at once of a step on one worker."""

    norm: float  # of the gradients, as backward left them
    norm_at_step: float
    seconds: float  # that measuring took


class Mode(NamedTuple):
    """How a node is to answer; it crosses as a plain tuple, in each call."""

    graph_trains: bool  # the graph: gradients, and `(output, aux)` of an own `forward`
    module_trains: bool
    gradients: bool
    frozen: tuple[str, ...]  # the parameters that ask for no gradient
    generator: Tensor | None  # torch's, where the module is known to draw from it
    turns: tuple[Turn, ...] = ()  # of the audits that listen


# What a node gives: its output, its aux, and torch's generator where the node has drawn from it.
Answer = tuple[object, object, Tensor | None]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a module holds: parameters and buffers, and what `get_extra_state` of parts gave."""

    tensors: Mapping[str, Tensor]
    extra: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Group:
    """A parameter group of an optimizer: its options, and what of it lies on one worker."""

    options: Mapping[str, object]
    weights: tuple[tuple[Place, str], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer's step on one worker."""

    graph: int
    name: str
    number: int  # of the client's optimizer, whose moments no other one takes over
    cls: type[Optimizer]
    defaults: Mapping[str, object]
    groups: tuple[Group, ...]
