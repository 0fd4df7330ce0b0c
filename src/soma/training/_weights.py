"""A module's weights as text, for node states: safetensors in base64, no pickle."""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from soma.cache import digest
from soma.engine import describe
from soma.errors import InvalidInput
from soma.training._twin import Mark, marks, unchanged


class ModuleState(Mapping[str, str]):
    """The state of a frozen module: `{"weights_b64": …}`, encoded when it is first read.

    It follows a twin that is moved to another type, or that a user writes to as `_module`.
    """

    def __init__(self, twin: nn.Module) -> None:
        self._twin = twin
        self._marks: list[Mark] | None = None  # of the weights that the two below are about
        self._encoded: str | None = None
        self._digest: str | None = None

    def __getitem__(self, key: str) -> str:
        if key != "weights_b64":
            raise KeyError(key)
        self._look()
        if self._encoded is None:
            self._encoded = encoded_weights(self._twin)
        return self._encoded

    def digest(self) -> str:
        """Return one digest for all weights, computed once while they do not change."""
        self._look()
        if self._digest is None:
            self._digest = digest(dict(self._twin.state_dict()))
        return self._digest

    def _look(self) -> None:
        """Forget what is known of weights that have changed since."""
        if not unchanged(self._twin, self._marks):
            self._marks, self._encoded, self._digest = marks(self._twin), None, None

    def __iter__(self) -> Iterator[str]:
        return iter(("weights_b64",))

    def __len__(self) -> int:
        return 1

    def __deepcopy__(self, memo: dict[int, object]) -> "ModuleState":
        return self  # the twin it reads is no one's to train

    def __repr__(self) -> str:
        names = [name for name, _ in self._twin.named_parameters()]
        return f"ModuleState({', '.join(names)})"


def encoded_weights(module: nn.Module) -> str:
    """Return every parameter and buffer of `module` as base64 text of a safetensors file.

    Raises:
        InvalidInput: a tensor that such a file cannot hold, as a sparse one.
    """
    tensors = {}
    for name, value in module.state_dict().items():
        if isinstance(value, Tensor):
            if value.layout is not torch.strided or value.is_quantized:
                raise InvalidInput(
                    f"`{name}` is {describe(value)} of layout {value.layout}, which a node state "
                    "cannot hold. Keep it dense, or out of the buffers."
                )
            # Cloned, so that tied tensors are stored twice; they are tied again where they load.
            tensors[name] = value.detach().cpu().contiguous().clone()
    try:
        return b64encode(save(tensors)).decode("ascii")
    except Exception as error:  # the library raises its own kinds, for dtypes that it lacks
        raise InvalidInput(f"these weights cannot be written: {error}") from error


def load_weights(module: nn.Module, weights: object) -> None:
    """Put weights that `encoded_weights` made into `module`, all of them or none.

    Raises:
        InvalidInput: the text is no weights, or they are of another module.
    """
    try:
        tensors = load(b64decode(str(weights), validate=True))
    except Exception as error:
        raise InvalidInput(f"`weights_b64` holds no weights: {error}") from error
    wanted = {name: one for name, one in module.state_dict().items() if isinstance(one, Tensor)}
    problems = [f"`{name}` is missing" for name in wanted if name not in tensors]
    problems += [f"`{name}` is not in the module" for name in tensors if name not in wanted]
    problems += [
        f"`{name}` is {describe(tensors[name])} and the module has {describe(one)}"
        for name, one in wanted.items()
        if name in tensors and tensors[name].shape != one.shape
    ]
    if problems:
        raise InvalidInput(f"these weights are of another module: {'; '.join(problems[:6])}.")
    module.load_state_dict(tensors, strict=False)
