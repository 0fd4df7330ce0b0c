"""`Spot`: one watched place, a node itself or a submodule of it; and how they are found.

A spot is the live side of a `Unit`: it knows its module while the audit lasts.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from soma._extras import loaded
from soma.audit._measure._activations import activation_of, name_of
from soma.audit._scope import AuditScope, ChannelConfig
from soma.health._numbers import Unit, UnitId

# Wrappers put these between the names that a user knows.
_WRAPPED = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
# In inference these run as one fused kernel, unless a hook is on any module in them.
_FUSED = (nn.TransformerEncoderLayer, nn.MultiheadAttention)


class Spot:
    """One watched place."""

    __slots__ = (
        "activation",
        "at",
        "channel_axis",
        "channels",
        "children",
        "dark",
        "elsewhere",
        "feeds_output",
        "groups",
        "id",
        "is_shy",
        "module",
        "node",
        "order",
        "parameters",
        "path",
        "places",
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
        self.at = -1  # among all spots
        self.order = -1
        self.activation = activation_of(unwrapped(module))
        self.groups = {} if config is None else config.groups_of(self.id)
        self.children: tuple[UnitId, ...] = ()
        self.channels: int | None = None
        self.channel_axis: int | None = None
        self.feeds_output = False
        self.shares_output = False
        self.unobserved: str | None = None
        self.weights_of: UnitId | None = None
        self.is_shy = False  # its hooks would change how inference runs
        self.elsewhere: Unit | None = None  # as it is known in the process where the module is
        self.places = 0  # in the order of calls, that what is inside it takes there
        self.dark = 0  # calls of this step with gradients off, that a backward may repeat
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

    def described(self) -> Unit:
        """Return the unit as it is known by now."""
        elements, trainable, own = self.parameters
        unit = self.unit
        facts = (self.order, elements, trainable, own, self.feeds_output, self.children)
        more = (
            self.channels,
            self.channel_axis,
            self.unobserved,
            self.shares_output,
            self.weights_of,
        )
        known = (
            unit.order,
            unit.parameters,
            unit.trainable,
            unit.own_trainable,
            unit.feeds_output,
            unit.children,
        )
        if facts != known or more != (
            unit.channels,
            unit.channel_axis,
            unit.unobserved,
            unit.shares_output,
            unit.weights_of,
        ):
            self.unit = Unit(
                id=unit.id,
                node=unit.node,
                path=unit.path,
                class_name=unit.class_name,
                source=unit.source,
                order=self.order,
                parameters=elements,
                trainable=trainable,
                own_trainable=own,
                activation=unit.activation,
                feeds_output=self.feeds_output,
                shares_output=self.shares_output,
                children=self.children,
                channels=self.channels,
                channel_axis=self.channel_axis,
                groups=self.groups,
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
        spot.is_shy = any(path == one or path.startswith(one + ".") or not one for one in fused)
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
