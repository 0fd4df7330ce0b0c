"""The loss that targets ask for where none is given: integers are classes, floats are values."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from soma.core import NodeId
from soma.engine import describe
from soma.errors import InvalidInput, InvalidOutput
from soma.training._targets import as_target

Function = Callable[[object, object, object], object]
_IGNORED = -100  # targets that torch's cross-entropy leaves out


def default_loss(leaf: NodeId, out: object, y: object, targets: object) -> tuple[str, Function]:
    """Return a name and a loss for outputs like `out` and targets like `y`.

    Args:
        targets: all that are known; `y` are some rows of them.

    Raises:
        InvalidInput: targets that are no numbers, or that such an output cannot meet.
        InvalidOutput: an output that no loss is known for.
    """
    if not isinstance(y, Tensor) or not isinstance(targets, Tensor) or y.is_complex():
        raise InvalidInput(
            f"the targets of leaf `{leaf}` are {describe(y)}; numbers are wanted. Number classes "
            "from 0, for instance with `numpy.unique(y, return_inverse=True)[1]`, or give a `loss`."
        )
    out = as_target(out, y.device)  # a plain filter may answer with lists or arrays
    if not isinstance(out, Tensor) or not out.is_floating_point() or not out.ndim:
        raise InvalidOutput(
            f"leaf `{leaf}` gives {describe(out)}; a loss is known for tensors of floats. Give "
            f"`loss={{{leaf!r}: function}}`, or targets for other leaves only."
        )
    if y.is_floating_point():
        _check_alike(leaf, out, y)
        return "mean squared error (float targets)", _squared_error
    if _is_one_score(out):
        _check_two_classes(leaf, out, y, targets)
        return "binary cross-entropy with logits (integer targets 0 and 1)", _binary_cross_entropy
    _check_classes(leaf, out, y, targets)
    return "cross-entropy (integer targets)", _cross_entropy


def _squared_error(out: object, y: object, aux: object) -> Tensor:
    out, y = _tensors(out, y)
    return F.mse_loss(out, _alike(out, y))


def _cross_entropy(out: object, y: object, aux: object) -> Tensor:
    out, y = _tensors(out, y)
    return F.cross_entropy(out, (y.squeeze(1) if y.ndim == out.ndim else y).long())


def _binary_cross_entropy(out: object, y: object, aux: object) -> Tensor:
    out, y = _tensors(out, y)
    return F.binary_cross_entropy_with_logits(out, _alike(out, y))


def _tensors(out: object, y: object) -> tuple[Tensor, Tensor]:
    assert isinstance(y, Tensor)  # for the type checker: `default_loss` looked
    if not isinstance(out, Tensor):
        out = as_target(out, y.device)
        assert isinstance(out, Tensor)
    return out, y


def _alike(out: Tensor, y: Tensor) -> Tensor:
    """Return `y` with the shape and dtype of `out`.

    (N,) against (N, 1) would be broadcast to (N, N), which trains without a word to the mean.
    """
    if y.shape != out.shape:
        if _essential(y.shape) != _essential(out.shape):
            raise InvalidInput(f"targets {describe(y)} do not fit the output, {describe(out)}.")
        y = y.reshape(out.shape)
    return y.to(out.dtype)


def _essential(shape: torch.Size) -> list[int]:
    return [size for size in shape[1:] if size != 1]


def _check_alike(leaf: NodeId, out: Tensor, y: Tensor) -> None:
    if _essential(y.shape) != _essential(out.shape):
        raise InvalidInput(
            f"the targets of leaf `{leaf}` are {describe(y)}, and its output is {describe(out)}. "
            "Float targets have the shape of the output; integers are classes, one for each row."
        )


def _is_one_score(out: Tensor) -> bool:
    return out.ndim == 1 or out.shape[1] == 1


def _check_two_classes(leaf: NodeId, out: Tensor, y: Tensor, targets: Tensor) -> None:
    _check_alike(leaf, out, y)
    low, high = _range(targets)
    if low < 0 or high > 1:
        raise InvalidInput(
            f"the integer targets of leaf `{leaf}` go from {low} to {high}, and its output has one "
            f"number for each, {describe(out)}, which tells only the classes 0 and 1 apart. Give "
            f"the leaf an output of {high + 1} numbers a row, or floats as targets to have it "
            "predict the number itself."
        )


def _check_classes(leaf: NodeId, out: Tensor, y: Tensor, targets: Tensor) -> None:
    wanted = (out.shape[0], *out.shape[2:])
    if tuple(y.shape) not in (wanted, (wanted[0], 1, *wanted[1:])):
        raise InvalidInput(
            f"the integer targets of leaf `{leaf}` are {describe(y)}, and its output is "
            f"{describe(out)}. Classes are numbers of shape {wanted}, with their scores along axis "
            "1 of the output. From one-hot rows `y.argmax(1)` makes them; where a row has several "
            "labels, give `loss=torch.nn.BCEWithLogitsLoss()` and floats."
        )
    low, high = _range(targets[targets != _IGNORED])
    if low < 0 or high >= out.shape[1]:
        wider = f", or give the leaf an output of {high + 1} numbers a row" if low >= 0 else ""
        raise InvalidInput(
            f"the integer targets of leaf `{leaf}` go from {low} to {high}, and its output has "
            f"scores for the classes 0 to {out.shape[1] - 1}. Number the classes from 0{wider}."
        )


def _range(targets: Tensor) -> tuple[int, int]:
    return (int(targets.min()), int(targets.max())) if targets.numel() else (0, 0)
