"""A module's weights as text, for node states: safetensors in base64, no pickle."""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from soma.cache import digest
from soma.engine import describe
from soma.errors import InvalidInput
from soma.training._settings import Look, Settings, settings
from soma.training._twin import Marks


class ModuleState(Mapping[str, str]):
    """The state of a frozen module: `{"weights_b64": …}`, encoded when it is first read.

    It follows a twin that is moved to another type, or that a user writes to as `_module`.
    """

    def __init__(self, twin: nn.Module) -> None:
        self._twin = twin
        self._marks: Marks | None = None  # of the weights that the two below are about
        self._encoded: str | None = None
        self._digest: str | None = None
        self._settings: Settings | None = None  # that the digest is about too
        self._look: Look | None = None  # while it holds, nothing of the above has changed

    def __getitem__(self, key: str) -> str:
        if key != "weights_b64":
            raise KeyError(key)
        self._now()
        if self._encoded is None:
            self._encoded = encoded_weights(self._twin)
        return self._encoded

    def digest(self) -> str | None:
        """Return one digest for weights and settings, computed once while they do not change.

        None: somebody's hook waits for calls of the module, and may change its answers.
        """
        if self._now().is_hooked():
            return None
        if self._digest is None:
            # Buffers that a state_dict leaves out change what the module answers, too.
            weights = {**self._twin.state_dict(), **dict(self._twin.named_buffers())}
            self._digest = digest((weights, self._settings))
        return self._digest

    def _now(self) -> Look:
        """Look at the twin, and forget what is known of weights and settings that have changed."""
        if self._look is None or not self._look.holds():
            self._look = Look(self._twin)
            if self._marks is None or not self._marks.hold():
                self._marks, self._encoded, self._digest = Marks(self._twin), None, None
            present = settings(self._twin)
            if present != self._settings:
                self._settings, self._digest = present, None
        return self._look

    def __iter__(self) -> Iterator[str]:
        return iter(("weights_b64",))

    def __len__(self) -> int:
        return 1

    def __deepcopy__(self, memo: dict[int, object]) -> "ModuleState":
        twin = memo.get(id(self._twin))  # where the filter is copied, it comes first
        return ModuleState(twin) if isinstance(twin, nn.Module) else self

    def __getstate__(self) -> nn.Module:
        return self._twin

    def __setstate__(self, twin: nn.Module) -> None:
        ModuleState.__init__(self, twin)

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
