"""The frozen copy of a module, made by `Graph.freeze` and used by inference while it is current."""

from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy

from torch import Tensor, nn

_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


def frozen_twin(module: nn.Module, memo: dict[int, object]) -> nn.Module:
    """Return a deep copy in eval whose weights ask for no gradient and that no hook watches.

    Args:
        module: left as it is.
        memo: of `copy.deepcopy`; one memo for several modules keeps what they share shared.
    """
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
    twin = deepcopy(module, memo)
    twin.requires_grad_(requires_grad=False)
    return twin.eval()


def _own_hooks(hooks: "dict[int, Callable[..., object]]") -> "dict[int, Callable[..., object]]":
    """Keep the hooks by which torch itself computes a weight: pruning, normalisation."""
    return {
        key: hook
        for key, hook in hooks.items()
        if (getattr(hook, "__module__", "") or type(hook).__module__).startswith("torch.nn.utils")
    }


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    """Whether two modules of one class hold the same parameters and buffers, bit for bit."""
    mine, theirs = _tensors(one), _tensors(other)
    return mine.keys() == theirs.keys() and all(
        _same(value, theirs[name]) for name, value in mine.items()
    )


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    # Buffers that a state_dict leaves out count too: they change what the module answers.
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype or one.device != other.device:
        return False
    # NaN weights count as changed: that costs a cached answer, never a stale one.
    return bool((one == other).all())
