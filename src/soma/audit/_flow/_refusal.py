"""When a module is not traced, since looking would change what it does.

Compiled code would be compiled again under a tracer, a scripted module takes no hooks, and
attention in eval leaves its fused path when somebody looks: other kernels, other last digits.
"""

from collections.abc import Iterator

from torch import nn
from torch.jit import ScriptModule

from soma.core import Filter

_FUSED_IN_EVAL = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)


def refusal(filter: Filter, module: nn.Module) -> str | None:
    """Return why a node is shown as one box; None: it can be traced."""
    if _is_compiled(type(filter).forward) or any(map(_is_compiled, _within_reach(filter))):
        return "compiled: only its ends were seen"
    for part in module.modules():
        if isinstance(part, ScriptModule):
            return "scripted: only its ends were seen"
        if isinstance(part, _FUSED_IN_EVAL) and not part.training:
            return "attention in eval, which tracing would slow down: only its ends were seen"
        if (
            getattr(part, "_compiled_call_impl", None) is not None
            or _is_compiled(part)
            or _is_compiled(part.forward)
            or any(map(_is_compiled, _within_reach(part)))
        ):
            return "compiled: only its ends were seen"
    return None


def _is_compiled(value: object) -> bool:
    # What `torch.compile` returns carries the original under one of these names.
    inside = getattr(value, "__dict__", ())
    return "_torchdynamo_orig_callable" in inside or "_orig_mod" in getattr(value, "_modules", ())


def _within_reach(owner: object) -> Iterator[object]:
    """Give the attributes of an object, and the globals that its `forward` names."""
    yield from vars(owner).values()
    forward = getattr(type(owner), "forward", None)
    code = getattr(forward, "__code__", None)
    names = getattr(forward, "__globals__", {})
    for name in code.co_names if code is not None else ():
        if name in names:
            yield names[name]
