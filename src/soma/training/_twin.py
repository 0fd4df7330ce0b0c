"""Copies of a module: the frozen twin that inference uses, and one whose weights are at rest.

A twin has weights of its own. A module at rest shares them with the original, but no gradient
reaches them.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


def frozen_twin(module: nn.Module, memo: dict[int, object]) -> nn.Module:
    """Return a deep copy in eval that no hook watches.

    Args:
        module: left as it is.
        memo: of `copy.deepcopy`; one memo for several modules keeps what they share shared.
    """
    return _copied(module, memo).eval()


def at_rest(module: nn.Module) -> nn.Module:
    """Return a module of the same weights, in the same memory, that asks for no gradient."""
    memo: dict[int, object] = {
        id(one): nn.Parameter(one.detach(), requires_grad=False)
        for one in module.parameters()
        if not is_lazy(one)
    }
    return _copied(module, memo | {id(one): one for one in module.buffers()})


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    """Whether two modules of one class hold the same parameters and buffers, bit for bit."""
    mine, theirs = _tensors(one), _tensors(other)
    return mine.keys() == theirs.keys() and all(
        _same(value, theirs[name]) for name, value in mine.items()
    )


class Marks:
    """The weights of a module at one moment: tells whether they are the same ones yet, untouched.

    A copy is about the copied module. A write through `.data` or a NumPy view leaves no mark.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._known: list[_Mark] | None = _marks(module)  # None: they did not hold when copied

    def hold(self) -> bool:
        """Whether no weight was exchanged, moved or written to, or asks for gradients anew."""
        present = _marks(self._module)
        return (
            self._known is not None
            and len(present) == len(self._known)
            and all(
                one.tensor is other.tensor and one[1:] == other[1:]
                for one, other in zip(present, self._known, strict=True)
            )
        )

    def __getstate__(self) -> tuple[nn.Module, bool]:
        return self._module, self.hold()

    def __setstate__(self, state: tuple[nn.Module, bool]) -> None:
        self._module, held = state
        self._known = _marks(self._module) if held else None


class _Mark(NamedTuple):
    tensor: Tensor
    version: int
    place: int
    asks: bool


def _marks(module: nn.Module) -> list[_Mark]:
    return [
        _Mark(one, one._version, place_of(one), one.requires_grad)
        for one in (*module.parameters(), *module.buffers())
    ]


def same_layout(one: nn.Module, other: nn.Module) -> bool:
    """Whether two modules have weights of the same names and shapes."""
    mine, theirs = one.state_dict(), other.state_dict()
    return mine.keys() == theirs.keys() and all(
        getattr(value, "shape", None) == getattr(theirs[name], "shape", None)
        for name, value in mine.items()
    )


def carry_over(source: nn.Module, target: nn.Module) -> None:
    """Give `target` the weights of `source`, and ask for gradients where it does."""
    target.load_state_dict(source.state_dict())
    asking = dict(source.named_parameters())
    for name, parameter in target.named_parameters():
        parameter.requires_grad_(asking[name].requires_grad)


def _copied(module: nn.Module, memo: dict[int, object]) -> nn.Module:
    for part in module.modules():
        for name in _HOOKS:
            hooks = getattr(part, name, None)
            if hooks:
                memo.setdefault(id(hooks), OrderedDict(_own_hooks(hooks)))
        for value in vars(part).values():
            if isinstance(value, Tensor) and not value.is_leaf:
                # Computed by a hook of torch at each call, as old weight normalisation does;
                # `deepcopy` refuses such tensors.
                memo.setdefault(id(value), value.detach().clone())
    attempt = dict(memo)
    try:
        twin = deepcopy(module, attempt)
    except Exception:  # an attribute that cannot be copied: a lock, a kept activation
        return _assembled(module, memo)
    memo.update(attempt)
    return twin


def _assembled(module: nn.Module, memo: dict[int, object]) -> nn.Module:
    """Copy weights and submodules; share the attributes that cannot be copied."""
    if id(module) in memo:
        return memo[id(module)]  # type: ignore[return-value]
    twin: nn.Module = type(module).__new__(type(module))
    memo[id(module)] = twin
    for name, value in vars(module).items():
        if name == "_modules":
            parts = {key: part and _assembled(part, memo) for key, part in value.items()}
            vars(twin)[name] = parts
            continue
        try:
            vars(twin)[name] = deepcopy(value, memo)
        except Exception:
            vars(twin)[name] = value
    return twin


def _own_hooks(hooks: Mapping[int, Callable[..., object]]) -> dict[int, Callable[..., object]]:
    """Keep the hooks by which torch itself computes a weight: pruning, normalisation."""
    return {
        key: hook
        for key, hook in hooks.items()
        if (getattr(hook, "__module__", "") or type(hook).__module__).startswith("torch.nn.utils")
    }


def place_of(tensor: Tensor) -> int:
    """Return where a tensor's numbers lie; 0 for those that have no place of their own."""
    try:
        return tensor.data_ptr()
    except RuntimeError:  # sparse tensors, and those that wrap others
        return 0


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    # Buffers that a state_dict leaves out count too: they change what the module answers.
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype or one.device != other.device:
        return False
    if one.layout != other.layout or one.is_quantized or is_lazy(one):
        return False
    if one.is_sparse:
        one, other = one.coalesce(), other.coalesce()
        return _same(one.indices(), other.indices()) and _same(one.values(), other.values())
    # NaN weights count as changed: that costs a cached answer, never a stale one.
    return bool((one == other).all())
