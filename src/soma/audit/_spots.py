"""`Spot`: a watched module, a node's own or a submodule of it; and which of a node there are.

A spot is the live side of a `Unit`: it holds the module while the audit lasts, and `Unit` is
what a record keeps of it.
"""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from soma._extras import loaded
from soma.audit._measure._activations import activation_of, name_of
from soma.audit._scope import AuditScope, ChannelConfig
from soma.health import Unit, UnitId

# Wrappers put these between the names that a user knows.
_WRAPPED = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
# In inference these run as one fused kernel, unless a hook is on any module in them.
_FUSED = (nn.TransformerEncoderLayer, nn.MultiheadAttention)


class Spot:
    """A watched module, or the place of one that is in another process."""

    __slots__ = (
        "_facts",
        "activation",
        "calls_without_grad",
        "channel_axis",
        "channels",
        "children",
        "elsewhere",
        "feeds_output",
        "groups",
        "id",
        "index",
        "inner_units",
        "is_fused_in_eval",
        "module",
        "node",
        "order",
        "parameters",
        "path",
        "shares_output",
        "unit",
        "unobserved",
        "weights",
        "weights_of",
    )

    def __init__(self, node: str, path: str, module: nn.Module, config: ChannelConfig | None):
        self.node = node
        self.path = path
        self.id: UnitId = f"{node}/{path}" if path else node
        self.module: nn.Module | None = module
        self.index = -1  # in the recorder's list of spots
        self.order = -1  # of the first call, among all spots; -1: not called yet
        self.activation = activation_of(unwrapped(module))
        self.groups = {} if config is None else config.groups_of(self.id)
        self.children: tuple[UnitId, ...] = ()
        self.channels: int | None = None
        self.channel_axis: int | None = None
        self.feeds_output = False
        self.shares_output = False
        self.unobserved: str | None = None
        self.weights_of: UnitId | None = None
        self.is_fused_in_eval = False  # a hook on it would make inference leave a fused kernel
        self.elsewhere: Unit | None = None  # as it is known in the process where the module is
        self.inner_units = 0  # units inside a module elsewhere, which come before it in the order
        self.calls_without_grad = 0  # in this step; a checkpoint's backward may repeat them
        self.weights: list[int] = []  # indices into the audit's parameters, each once
        self.parameters: tuple[int, int, int] = (0, 0, 0)  # elements, trainable, own trainable
        cls = type(unwrapped(module))
        self.unit = Unit(
            id=self.id,
            node=node,
            path=path,
            class_name=cls.__name__,
            source=source_of(cls),
            order=-1,
            parameters=0,
            trainable=0,
            own_trainable=0,
            activation=None if self.activation is None else name_of(self.activation),
            feeds_output=False,
            groups=self.groups,
        )
        self._facts: tuple[object, ...] = ()

    def described(self) -> Unit:
        """Return the unit as it is known by now."""
        facts = (
            self.order,
            self.parameters,
            self.feeds_output,
            self.shares_output,
            self.children,
            self.channels,
            self.channel_axis,
            self.unobserved,
            self.weights_of,
        )
        if facts != self._facts:  # a new `Unit` in each step for each spot would cost more
            self._facts = facts
            elements, trainable, own = self.parameters
            self.unit = replace(
                self.unit,
                order=self.order,
                parameters=elements,
                trainable=trainable,
                own_trainable=own,
                feeds_output=self.feeds_output,
                shares_output=self.shares_output,
                children=self.children,
                channels=self.channels,
                channel_axis=self.channel_axis,
                unobserved=self.unobserved,
                weights_of=self.weights_of,
            )
        return self.unit


def is_compiled(module: nn.Module) -> bool:
    """Whether a module is what `torch.compile` returned."""
    dynamo = loaded("torch._dynamo.eval_frame")  # what is not loaded has compiled nothing
    return dynamo is not None and isinstance(module, dynamo.OptimizedModule)


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the module that a user wrote, inside a compiled or parallel one."""
    while True:
        if is_compiled(module):
            module = module._orig_mod  # type: ignore[assignment]
        elif isinstance(module, DataParallel | DistributedDataParallel):
            module = module.module
        else:
            return module


def spots_in(
    node: str, root: nn.Module, scope: AuditScope | None, config: ChannelConfig | None
) -> list[Spot]:
    """Return the spots of a node: itself first, then the submodules in scope."""
    found: dict[str, Spot] = {}
    for path, module, compiled in _named_modules(root):
        if path in found or (path and (scope is None or not scope.takes(path))):
            continue
        if path and not _is_called(module):
            continue
        spot = found[path] = Spot(node, path, module, config)
        if isinstance(module, torch.jit.ScriptModule):
            spot.unobserved = "script"
        elif compiled or module._compiled_call_impl is not None:
            spot.unobserved = "compiled"
    fused = [path for path, module, _ in _named_modules(root) if isinstance(module, _FUSED)]
    for path, spot in found.items():
        spot.is_fused_in_eval = any(
            path == one or path.startswith(one + ".") or not one for one in fused
        )
        inside = [one for one in found if one != path and (not path or one.startswith(path + "."))]
        spot.children = tuple(
            found[one].id
            for one in inside
            if not any(one.startswith(other + ".") for other in inside if other != one)
        )
    return list(found.values())


def named_modules(root: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Give a module and all in it, by the paths that users know."""
    return ((path, module) for path, module, _ in _named_modules(root))


def _named_modules(root: nn.Module) -> Iterator[tuple[str, nn.Module, bool]]:
    """Give path, module and whether it runs inside a compiled one."""
    compiled_below: list[str] = []
    for name, module in root.named_modules():
        raw = name.split(".") if name else []
        if isinstance(root, DataParallel | DistributedDataParallel) and raw[:1] == ["module"]:
            raw = raw[1:]
        inside = any(
            name != one and (not one or name.startswith(one + ".")) for one in compiled_below
        )
        path = ".".join(part for part in raw if part not in _WRAPPED)
        yield path, module, inside
        if is_compiled(module) or module._compiled_call_impl is not None:
            compiled_below.append(name)


def _is_called(module: nn.Module) -> bool:
    """Whether a module has a `forward` at all; containers such as `ModuleDict` have none."""
    if isinstance(module, torch.jit.ScriptModule):
        return True
    if isinstance(module, nn.ParameterList | nn.ParameterDict):
        return False
    return type(module).forward is not nn.Module.forward


def source_of(cls: type) -> str:
    """Return where a class is defined, `model.py:42`; empty for those of installed libraries."""
    try:
        file = inspect.getsourcefile(cls)
        if file is None or _INSTALLED.intersection(Path(file).parts):
            return ""
        return f"{Path(file).name}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):
        return ""


_INSTALLED = frozenset({"dist-packages", "site-packages"})
