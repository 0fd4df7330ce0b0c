"""A class of a user is keyed and stored once it has a codec."""

from collections.abc import Iterator

import numpy as np
import pytest

from soma.cache import _registry
from soma.cache._codec import Undecodable, decode_inline, encode
from soma.cache._digest import Undigestible, digest
from soma.cache._registry import register_codec


class Model:
    """A class that is no dataclass."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights


class Other(Model):
    """A class that takes nothing over from the codec of its base."""


@pytest.fixture(autouse=True)
def _no_codecs() -> Iterator[None]:
    """Forget what a test registers."""
    yield
    _registry._by_name.clear()
    _registry._taker.cache_clear()


def register(cls: type[Model] = Model, name: str = "model") -> None:
    """Register the codec that the tests try."""
    register_codec(cls, name=name, encode=lambda model: {"w": model.weights}, decode=made)


def made(stored: dict[str, np.ndarray]) -> Model:
    """Make a model again."""
    return Model(stored["w"])


def test_a_registered_class_comes_back() -> None:
    """An object with a codec has a digest, is stored, and comes back in its class."""
    with pytest.raises(Undigestible, match="register_codec"):
        digest(Model(np.ones(3)))
    register()
    encoded = encode([Model(np.ones(3))])
    assert encoded.inline is not None
    (back,) = decode_inline(encoded.inline)  # type: ignore[misc]

    assert type(back) is Model
    assert digest([back]) == encoded.digest != digest([Model(np.zeros(3))])


def test_subclasses_need_their_own_codec() -> None:
    """A subclass may hold more, so the codec of its base is not used for it."""
    register()

    with pytest.raises(Undigestible, match="Other"):
        digest(Other(np.ones(3)))


def test_a_name_stands_for_one_class() -> None:
    """A second class under a taken name is refused."""
    register()

    with pytest.raises(ValueError, match="'model' is taken by"):
        register(Other)


def test_a_class_may_be_registered_again() -> None:
    """The last codec of a class counts, as after a cell of a notebook runs twice."""
    register()
    register(name="model 2")
    text = encode(Model(np.ones(3))).inline

    assert text is not None
    assert b'"model 2"' in text


def test_a_name_nobody_registered_is_a_miss() -> None:
    """A stored name makes nothing happen unless this process knows it."""
    register()
    text = encode(Model(np.ones(3))).inline
    assert text is not None
    _registry._by_name.clear()

    with pytest.raises(Undecodable):
        decode_inline(text)


def test_a_codec_that_fails_says_so() -> None:
    """An error of a user's codec is a reason when writing, and a miss when reading."""

    def fail(value: object) -> Model:
        raise RuntimeError("not today")

    register_codec(Model, name="model", encode=lambda model: 1, decode=fail)
    text = encode(Model(np.ones(3))).inline
    assert text is not None
    with pytest.raises(Undecodable, match="not today"):
        decode_inline(text)

    register_codec(Model, name="model", encode=fail, decode=fail)
    with pytest.raises(Undigestible, match="not today"):
        digest(Model(np.ones(3)))


def test_a_codec_that_answers_with_its_own_class_is_refused() -> None:
    """A codec has to give something simpler, or nothing would ever be stored."""
    register_codec(Model, name="model", encode=lambda model: Model(model.weights), decode=made)

    with pytest.raises(Undigestible, match="deeper than 1,000"):
        digest(Model(np.ones(3)))
