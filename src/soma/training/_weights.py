"""A module's weights as text, for node states: safetensors in base64, no pickle."""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping

from safetensors.torch import load, save
from torch import Tensor, nn

from soma.errors import InvalidInput


class ModuleState(Mapping[str, str]):
    """The state of a frozen module: `{"weights_b64": …}`, encoded when it is first read."""

    def __init__(self, twin: nn.Module) -> None:
        self._twin = twin
        self._encoded: str | None = None

    def __getitem__(self, key: str) -> str:
        if key != "weights_b64":
            raise KeyError(key)
        if self._encoded is None:
            self._encoded = encoded_weights(self._twin)
        return self._encoded

    def __iter__(self) -> Iterator[str]:
        return iter(("weights_b64",))

    def __len__(self) -> int:
        return 1


def encoded_weights(module: nn.Module) -> str:
    """Return every parameter and buffer of `module` as base64 text of a safetensors file."""
    tensors = {
        # Cloned, so that tied tensors are stored twice; they are tied again where they load.
        name: value.detach().cpu().contiguous().clone()
        for name, value in module.state_dict().items()
        if isinstance(value, Tensor)
    }
    return b64encode(save(tensors)).decode("ascii")


def load_weights(module: nn.Module, weights: object) -> None:
    """Put weights that `encoded_weights` made into `module`.

    Raises:
        InvalidInput: the text is no weights, or they are of another module.
    """
    try:
        tensors = load(b64decode(str(weights), validate=True))
    except Exception as error:
        raise InvalidInput(f"`weights_b64` holds no weights: {error}") from error
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        raise InvalidInput(f"the weights are of another module. {error}") from error
