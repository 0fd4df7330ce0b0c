"""What each kind of node does when its turn comes, in training and in inference.

In training a module stands in the program itself, so its own `__call__` runs and hooks fire;
only nodes that need something more get one of the small classes below.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from soma.cache import Undigestible
from soma.core import Filter, Node, NodeId, Topology, has_module
from soma.engine import Call, Part, Unkeyed, describe
from soma.errors import InvalidOutput, NotMaterialized
from soma.training._called import called
from soma.training._convert import Kind, Wanted, detached, mirrored, to_tensors, wanted_by
from soma.training._filter import DifferentiableFilter
from soma.training._twin import at_rest


def overrides_forward(filter: DifferentiableFilter) -> bool:
    """Whether a filter's own `forward` has to run, rather than its module alone."""
    return type(filter).forward is not DifferentiableFilter.forward


def only_bare_modules(topology: Topology, nodes: Sequence[NodeId]) -> bool:
    """Whether all of `nodes`, and at least one, are modules that run without a `forward` around."""
    filters = [topology.nodes[node].filter for node in nodes]
    return bool(filters) and all(
        isinstance(one, DifferentiableFilter) and not overrides_forward(one) for one in filters
    )


def seen_by_others(topology: Topology, node: NodeId) -> bool:
    """Whether anybody but modules gets what a module node gives: the caller, a plain filter."""
    successors = topology.wiring().successors[node]
    return not successors or not all(has_module(topology.nodes[one].filter) for one in successors)


def built_module(node: Node) -> nn.Module:
    """Return a node's module.

    Raises:
        NotMaterialized: it has not been built.
    """
    filter = node.filter
    module = filter._module if isinstance(filter, DifferentiableFilter) else None
    if module is None:
        raise NotMaterialized(
            f"`{node.id}` ({filter._description()}) has no module yet. Call `g.fit(x, y)`, or "
            "`g.materialize(sample)` before a training loop of your own."
        )
    return module


def module_call(module: nn.Module, *, takes_tensors: bool) -> Call:
    """Return a plain call of a module; `takes_tensors`: its input is known to be tensors."""
    return Call(module if takes_tensors else Converting(module))


class Converting:
    """A module behind a conversion of lists and arrays to tensors."""

    __slots__ = ("module",)

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __call__(self, x: object) -> object:
        given = x if type(x) is Tensor else to_tensors(x, wanted_by(self.module))
        return called(self.module, given)


class Training:
    """An overridden `forward` in a training graph: gives `(output, aux)`."""

    __slots__ = ("filter",)

    def __init__(self, filter: DifferentiableFilter) -> None:
        self.filter = filter

    def __call__(self, x: object) -> tuple[object, object]:
        filter = self.filter
        if type(x) is not Tensor:
            x = given_tensors(x, filter)
        if filter.training:
            answer = filter.forward(x, None)
        else:
            # The graph's mode decides what comes back; the filter's own only sets its module's.
            filter.training = True
            try:
                answer = filter.forward(x, None)
            finally:
                filter.training = False
        # The first look is for speed; `checked_pair` says what is wrong.
        if (
            type(answer) is tuple
            and len(answer) == 2
            and type(answer[1]) is dict
            and answer[0] is not None
        ):
            return answer
        return checked_pair(filter, answer)


class Judging:
    """An overridden `forward` in eval that still gives tensors and keeps its aux."""

    __slots__ = ("filter",)

    def __init__(self, filter: DifferentiableFilter) -> None:
        self.filter = filter

    def __call__(self, x: object) -> tuple[object, object]:
        wanted = wanted_of(self.filter)
        answer = self.filter.forward(to_tensors(x, wanted), None)
        output, aux = checked_pair(self.filter, answer)
        return to_tensors(output, wanted), aux


class Live:
    """A plain differentiable filter: gradients pass, its state is constant."""

    __slots__ = ("filter", "state")

    def __init__(self, filter: Filter, state: object) -> None:
        self.filter = filter
        self.state = state

    def __call__(self, x: object) -> object:
        try:
            output = self.filter.forward(x, self.state)
        except RuntimeError as error:
            if "requires grad" in str(error) and "numpy" in str(error):
                error.add_note(
                    f"`{type(self.filter).__name__}` says `_differentiable = True`, and its "
                    "`forward` leaves torch. Take that line out, or use torch operations only."
                )
            raise
        return checked_output(self.filter, output)


class Opaque:
    """A plain filter that no gradient passes: it sees detached values only."""

    __slots__ = ("filter", "state")

    def __init__(self, filter: Filter, state: object) -> None:
        self.filter = filter
        self.state = state

    def __call__(self, x: object) -> object:
        with torch.no_grad():
            output = self.filter.forward(detached(x), self.state)
        return checked_output(self.filter, output)


class Evaluating:
    """An overridden `forward` in inference: gives the output alone."""

    __slots__ = ("filter",)

    def __init__(self, filter: DifferentiableFilter) -> None:
        self.filter = filter

    def __call__(self, x: object) -> object:
        filter = self.filter
        if type(x) is not Tensor:
            x = given_tensors(x, filter)
        if not filter.training:
            return checked_pair(filter, filter.forward(x, filter._frozen_state()))[0]
        filter.training = False
        try:
            return checked_pair(filter, filter.forward(x, filter._frozen_state()))[0]
        finally:
            filter.training = True


class AtRest:
    """A module node in inference whose input gets a gradient and whose weights get none."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def __call__(self, x: object) -> object:
        filter = self.node.filter
        assert isinstance(filter, DifferentiableFilter)
        module = at_rest(built_module(self.node))
        if not overrides_forward(filter):
            return module(to_tensors(x, wanted_by(module)))
        with filter._module_replaced(module):
            return mirrored(Evaluating(filter)(x), "tensor")


class ModuleKey:
    """Tells the answers of a frozen module: by its weights, and the kind of values it gives."""

    __slots__ = ("filter", "kind")

    def __init__(self, filter: DifferentiableFilter, kind: Kind) -> None:
        self.filter = filter
        self.kind = kind

    def parts(self) -> tuple[Part, ...]:
        """Return the digest of the weights and the kind.

        Raises:
            Unkeyed: the weights are live ones or have no digest, or a hook is on the module.
        """
        state = self.filter._frozen_state()
        if state is None:
            raise Unkeyed("its weights may change at any time; `g.freeze()` makes them known")
        try:
            digest = state.digest()
        except Undigestible as refusal:
            raise Unkeyed(f"its weights have no digest: {refusal}") from refusal
        if digest is None:
            raise Unkeyed("a hook on its module waits to be called; remove it to have answers kept")
        return digest, self.kind


class Copying:
    """A function that works in place, on a copy of an input that others read too."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[object], object]) -> None:
        self.function = function

    def __call__(self, x: object) -> object:
        return self.function(x.clone() if isinstance(x, Tensor) else x)


class Mirrored:
    """A function whose output goes back to the kind of value that the graph was given."""

    __slots__ = ("function", "kind")

    def __init__(self, function: Callable[[object], object], kind: Kind) -> None:
        self.function = function
        self.kind = kind

    def __call__(self, x: object) -> object:
        return mirrored(self.function(x), self.kind)


def given_tensors(x: object, filter: DifferentiableFilter) -> object:
    """Return what a filter's own `forward` is given: numbers as tensors of its module's dtype."""
    if type(x) is dict:
        for part in x.values():
            if type(part) is not Tensor:
                break
        else:
            return x  # a fan-in of tensors, as in every step
    return to_tensors(x, wanted_of(filter))


def wanted_of(filter: DifferentiableFilter) -> Wanted:
    """Return what tensors a filter's own `forward` is given."""
    return wanted_by(nn.Module() if filter._module is None else filter._module)


def checked_output(filter: Filter, output: object) -> object:
    """Return the output of a plain filter in training, unless it is None."""
    if output is None:
        raise InvalidOutput(
            f"`{type(filter).__name__}.forward` returned None; in training its output is wanted. "
            "Is a `return` missing?"
        )
    return output


def checked_pair(filter: DifferentiableFilter, answer: object) -> tuple[object, dict[str, object]]:
    """Return what an overridden `forward` gave, if it is an output and a dict."""
    if type(answer) is tuple and len(answer) == 2:
        output, aux = answer
        if isinstance(aux, dict) and output is not None:
            return answer
    raise InvalidOutput(
        f"`{type(filter).__name__}.forward` returned {describe(answer)}; a differentiable filter "
        "returns `(output, aux)`, aux being a dict. Is a `return out, {}` missing?"
    )
