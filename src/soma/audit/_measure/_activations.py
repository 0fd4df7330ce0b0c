"""Which activation an output went through, and where that activation has become flat."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from soma.audit._measure._row_norms import PIECE
from soma.audit._measure._sample import sampled

# By the class's own name, so that look-alikes and quantised twins are known too.
KNOWN = {
    "CELU": "celu",
    "ELU": "elu",
    "GELU": "gelu",
    "Hardsigmoid": "hardsigmoid",
    "Hardswish": "hardswish",
    "Hardtanh": "hardtanh",
    "LeakyReLU": "leaky_relu",
    "LogSigmoid": "log_sigmoid",
    "Mish": "mish",
    "PReLU": "prelu",
    "RReLU": "rrelu",
    "ReLU": "relu",
    "ReLU6": "relu6",
    "SELU": "selu",
    "SiLU": "silu",
    "Sigmoid": "sigmoid",
    "Softmax": "softmax",
    "Softmax2d": "softmax",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Tanh": "tanh",
}


def activation_of(module: nn.Module) -> nn.Module | None:
    """Return the activation that a module's output comes from; None: none that is known.

    That is the module itself, or the last of a `Sequential`, sequences in it included.
    """
    if isinstance(module, nn.Sequential) and len(module) and type(module).forward is _SEQUENTIAL:
        return activation_of(module[-1])
    return module if type(module).__name__ in KNOWN else None


_SEQUENTIAL = nn.Sequential.forward


def name_of(activation: nn.Module) -> str:
    """Return an activation's name, `relu`."""
    return KNOWN[type(activation).__name__]


def flat_share(
    activation: nn.Module, output: Tensor, open_rows: Tensor | None = None
) -> Tensor | None:
    """Return the share of outputs where the slope is below 5 % of its peak, as a tensor.

    Of a large output a sample tells it.

    None: the activation has no flat part, or its output alone does not tell where.

    Args:
        activation: what the output comes from.
        output: plain numbers.
        open_rows: of a softmax, the rows that `open_rows` found.
    """
    name = name_of(activation)
    if name == "softmax":
        # A softmax is flat where no probability of a row can move: its largest p (1 - p) is small.
        is_flat = (1 - output).mul_(output).amax(_axis(activation, output)) < 0.05 * 0.25
        if open_rows is None:
            return is_flat.float().mean()
        return (is_flat & open_rows).sum() / open_rows.sum().clamp(min=1)
    test = _FLAT.get(name)
    if test is None:
        return None
    if (some := sampled(output)) is not None:
        return test(activation, some).mean()
    pieces = torch.split(output.reshape(-1), PIECE)
    return torch.stack([test(activation, one).sum() for one in pieces]).sum() / output.numel()


def open_rows(activation: nn.Module, given: object) -> Tensor | None:
    """Return which rows of a softmax's input have two entries unmasked; None: all of them."""
    if name_of(activation) != "softmax" or not isinstance(given, Tensor) or not given.numel():
        return None
    given = given.detach()
    if given.device.type == "cpu" and given.amin() != -math.inf:
        return None
    return (given != -math.inf).sum(_axis(activation, given)) > 1


def _axis(activation: nn.Module, x: Tensor) -> int:
    if type(activation).__name__ == "Softmax2d":
        return -3
    axis = getattr(activation, "dim", None)
    if isinstance(axis, int):
        return axis
    return 0 if x.dim() in (0, 1, 3) else 1  # as torch itself chooses


def _beyond(output: Tensor, centre: float, reach: float) -> Tensor:
    distance = output - centre if centre else output.abs()
    return (distance.abs_() > reach).to(output.dtype)


def _tanh(_: nn.Module, output: Tensor) -> Tensor:
    return _beyond(output, 0.0, 0.95**0.5)  # 1 - y^2 < 0.05


def _sigmoid(_: nn.Module, output: Tensor) -> Tensor:
    return _beyond(output, 0.5, (0.25 * 0.95) ** 0.5)  # y (1 - y) < 0.05 / 4


def _softsign(_: nn.Module, output: Tensor) -> Tensor:
    return _beyond(output, 0.0, 1 - 0.05**0.5)  # (1 - |y|)^2 < 0.05


def _hardtanh(activation: nn.Module, output: Tensor) -> Tensor:
    low, high = float(activation.min_val), float(activation.max_val)  # type: ignore[arg-type]
    return ((output <= low) | (output >= high)).to(output.dtype)


def _hardsigmoid(_: nn.Module, output: Tensor) -> Tensor:
    return ((output <= 0) | (output >= 1)).to(output.dtype)


def _exponential(activation: nn.Module, output: Tensor) -> Tensor:
    """Return where `alpha (exp x - 1)` is flat: its slope below 0 is its distance from `-alpha`."""
    alpha = float(activation.alpha) if hasattr(activation, "alpha") else _SELU  # type: ignore[arg-type]
    steepest = alpha if type(activation).__name__ == "CELU" else max(alpha, 1.0)
    return (output + alpha < 0.05 * steepest).to(output.dtype)


def _relu6(_: nn.Module, output: Tensor) -> Tensor:
    """Return where it is at the ceiling; what is always 0 is found as dead."""
    return (output >= 6).to(output.dtype)


_SELU = 1.7580993408473766  # what a SELU goes to below 0


_FLAT: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "celu": _exponential,
    "elu": _exponential,
    "hardsigmoid": _hardsigmoid,
    "hardtanh": _hardtanh,
    "relu6": _relu6,
    "selu": _exponential,
    "sigmoid": _sigmoid,
    "softsign": _softsign,
    "tanh": _tanh,
}
