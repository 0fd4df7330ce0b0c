"""Calls a module, and says of an error what about the input does not suit it.

torch tells of two dtypes or of a wrong argument; what to do about it depends on how values
come to a module here, and that is told in a note.
"""

import torch
from torch import Tensor, nn

from soma.engine import describe
from soma.training._convert import wanted_by


def called(module: nn.Module, given: object) -> object:
    """Return what a module answers; its error gets a note on an input that does not suit it."""
    try:
        return module(given)
    except Exception as error:
        wanted = wanted_by(module)
        if not isinstance(given, Tensor):
            error.add_note(
                f"the module was given {describe(given)}. Tensors, arrays and lists of numbers "
                "become tensors; convert anything else in a filter before it, a frame for "
                "instance with `x.to_numpy(dtype='float32')`. A fan-in comes as a dict by "
                "predecessor, so it needs a `forward` of its own."
            )
        elif given.device != wanted.device:
            error.add_note(
                f"the module is on {wanted.device} and was given a tensor on {given.device}. "
                "Tensors stay where they are: move yours with `x.to(device)`, or the modules with "
                "`g.to(device)`."
            )
        elif given.dtype != wanted.dtype and not wanted.keeps_integers:
            error.add_note(
                f"the module computes in {_name(wanted.dtype)} and was given a tensor of "
                f"{_name(given.dtype)}. Tensors stay as they are: convert yours with "
                f"`x.to({wanted.dtype})`, or the modules with `g.to(dtype=...)`; arrays and lists "
                "are converted."
            )
        raise


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
