"""Do signal and gradient keep their size from the first layer to the last?"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from soma.audit.preflight._check import Check
from soma.audit.preflight._subject import Subject
from soma.errors import listing

NAME = "depth"
LOW, HIGH = 2e-3, 1e3  # of the same product at the end


@dataclass(slots=True)
class _Seen:
    """Norms at one layer's output. Their product does not change with the scale of data or loss."""

    signal: float
    gradient: float = 0.0


def check_depth(subject: Subject, x: object, y: object) -> Check:
    """Run one step and compare signal times gradient, layer by layer, with that at the output."""
    seen: dict[str, _Seen] = {}
    handles = [
        part.register_forward_hook(_Watch(f"{owner}.{name}" if name else owner, seen))
        for owner, module in subject.modules()
        for name, part in module.named_modules()
        if any(True for _ in part.parameters(recurse=False))
    ]
    try:
        _, loss = subject.outputs_and_loss(x, y)
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
    finally:
        for handle in handles:
            handle.remove()
    sizes = {name: one.signal * one.gradient for name, one in seen.items() if one.gradient}
    if len(sizes) < 2:
        return Check(name=NAME, outcome="skipped", told="there are not two layers to compare")
    *_, last = sizes.values()
    shares = {name: size / last for name, size in sizes.items()}
    weakest, strongest = min(shares.values()), max(shares.values())
    numbers = {"smallest": weakest, "largest": strongest}
    told = f"signal times gradient is {weakest:.2g} to {strongest:.2g} times that of the last layer"
    faint = [name for name, share in shares.items() if share < LOW]
    loud = [name for name, share in shares.items() if share > HIGH]
    if faint or loud:
        return Check(
            name=NAME,
            outcome="warning",
            told=f"{told}: {listing(faint or loud)} {'starve' if faint else 'explode'}",
            help="Start weights by the activation's gain (`torch.nn.init.kaiming_normal_` for "
            "ReLU, `xavier_normal_` with 5/3 for tanh), or put a norm or a skip in between.",
            numbers=numbers,
        )
    return Check(name=NAME, outcome="ok", told=told, numbers=numbers)


class _Watch:
    """Notes the norms of one layer's outputs and of their gradients."""

    def __init__(self, name: str, seen: dict[str, _Seen]) -> None:
        self.name = name
        self.seen = seen

    def __call__(self, part: nn.Module, given: object, output: Any) -> None:
        value = output[0] if isinstance(output, tuple) and output else output
        if not isinstance(value, Tensor) or not value.requires_grad:
            return
        seen = self.seen[self.name] = _Seen(float(value.detach().float().norm()))

        def note(gradient: Tensor) -> None:
            seen.gradient += float(gradient.detach().float().norm())

        value.register_hook(note)  # type: ignore[no-untyped-call]
