"""A digest tells values apart by type and content, and by nothing else."""

import copy
import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from blake3 import blake3
from hypothesis import given

from soma.cache._digest import Undigestible, combine, digest
from soma.cache._hash import THREADED_FROM, hash_bytes
from soma.errors import SomaError
from tests.cache.values import NESTED, ODD_NAN, VALUES, Settings, names

ALIKE = [
    *(
        None,
        True,
        1,
        1.0,
        "1",
        b"1",
        bytearray(b"1"),
        False,
        0,
        0.0,
        -0.0,
        1 + 0j,
        "",
        b"",
        (),
        [],
        {},
    ),
    *(
        (1,),
        [1],
        {1},
        frozenset({1}),
        {1: 1},
        {"1": 1},
        {1.0: 1},
        {True: 1},
        [[1]],
        [(1,)],
        [1, []],
    ),
    *(
        np.int64(1),
        np.int32(1),
        np.float64(1),
        np.bool_(True),
        np.array(1),
        np.array([1]),
        np.array([[1]]),
    ),
    *(
        np.array([1], "i4"),
        np.array([1], ">i8"),
        np.array([1.0]),
        np.array([1], "M8[s]"),
        np.array([1], "m8[s]"),
    ),
    *(torch.tensor(1), torch.tensor([1]), torch.tensor([1], dtype=torch.int32), torch.Size([1])),
    *(
        torch.nn.Parameter(torch.ones(1)),
        torch.ones(1),
        [1.0] * 40,
        [1] * 40,
        [True] * 40,
        ["1"] * 40,
    ),
    *(
        (1.0,) * 40,
        [1.0] * 39 + [1],
        np.ones(40),
        float("nan"),
        ODD_NAN,
        [float("nan")],
        ["a", "b"],
        ["ab"],
    ),
]


def test_values_that_look_alike_have_digests_of_their_own() -> None:
    """No two values of different type or content share a digest."""
    assert len(set(map(digest, ALIKE))) == len(ALIKE)


@pytest.mark.parametrize("value", VALUES, ids=names(VALUES))
def test_a_copy_has_the_same_digest(value: object) -> None:
    """A deep copy has the digest of its original, which is 64 hexadecimal digits."""
    name = digest(value)

    assert digest(copy.deepcopy(value)) == name
    assert len(bytes.fromhex(name)) == 32


@given(NESTED)
def test_a_digest_is_stable(value: object) -> None:
    """Any nesting of plain values has the digest of its deep copy."""
    assert digest(copy.deepcopy(value)) == digest(value)


@given(NESTED, NESTED)
def test_equal_digests_mean_equal_values(one: object, other: object) -> None:
    """Two nestings have one digest only where they are written the same."""
    assert (digest(one) == digest(other)) == (written(one) == written(other))


def written(value: object) -> object:
    """Write a value so that type, order and bits count. Only for the judge's eyes."""
    if isinstance(value, list | tuple):
        return type(value), [written(item) for item in value]
    if isinstance(value, dict):
        return dict, [(written(key), written(item)) for key, item in value.items()]
    if isinstance(value, set):
        return set, sorted(repr(written(item)) for item in value)
    if isinstance(value, float):
        return float, np.float64(value).tobytes()
    if isinstance(value, complex):
        return complex, np.complex128(value).tobytes()
    return type(value), repr(value)


GRID = np.arange(24.0).reshape(4, 6)
CUBE = torch.arange(24.0).reshape(2, 3, 4)
CUTS = [CUBE.mT, CUBE[:, ::2], CUBE.flip(0), CUBE[0].expand(5, 3, 4)]
VIEWS = [
    *(np.arange(9)[::2], np.arange(9)[::-1], np.broadcast_to(1.0, 3)),
    GRID.T,
    GRID[:, ::2],
    GRID[::-1],
    np.asfortranarray(GRID),
    GRID[1:3],
    np.broadcast_to(1, (2, 3)),
]


@pytest.mark.parametrize("view", VIEWS, ids=names(VIEWS))
def test_strides_of_an_array_do_not_count(view: np.ndarray) -> None:
    """A view has the digest of a contiguous array with the same items."""
    assert digest(view) == digest(np.array(view.tolist(), view.dtype))


@pytest.mark.parametrize("view", CUTS, ids=names(CUTS))
def test_strides_of_a_tensor_do_not_count(view: torch.Tensor) -> None:
    """A view has the digest of a contiguous tensor with the same items."""
    assert digest(view) == digest(torch.tensor(view.tolist()))


def test_gradients_do_not_count() -> None:
    """`requires_grad` and an autograd history leave the digest as it is."""
    plain = torch.ones(3)
    leaf = torch.ones(3, requires_grad=True)

    assert digest(plain) == digest(leaf) == digest(leaf * 1)


def test_sharing_does_not_count() -> None:
    """One object in two places has the digest of two equal ones."""
    shared = [np.ones(3)]

    assert digest([{"a": shared}, shared]) == digest([{"a": [np.ones(3)]}, [np.ones(3)]])


def test_shared_contents_cost_once() -> None:
    """A list that holds one list twice, a hundred times over, still has a digest."""
    value: list[object] = []
    for _ in range(100):
        value = [value, value]

    assert digest(value) != digest([value, value])


def test_the_order_of_a_dict_counts_in_values_only() -> None:
    """Dicts in another order differ as values and are one as configurations, at any depth."""
    one, other = [{"a": {1: 2, "b": 3}}], [{"a": {"b": 3, 1: 2}}]

    assert digest(one) != digest(other)
    assert digest(one, unordered_dicts=True) == digest(other, unordered_dicts=True)
    assert digest({1: 2}, unordered_dicts=True) != digest({2: 1}, unordered_dicts=True)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_hash_seeds_do_not_count(seed: str) -> None:
    """A set has one digest in every process."""
    value = "[{'a', 'b', 1, None, ('c', 2)}, frozenset('xyz')]"
    code = f"from soma.cache._digest import digest; print(digest({value}))"
    run = [sys.executable, "-c", code]
    env = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
    fresh = subprocess.run(run, capture_output=True, text=True, env=env, check=True)

    assert fresh.stdout.strip() == digest([{"a", "b", 1, None, ("c", 2)}, frozenset("xyz")])


def test_a_digest_needs_no_heavy_library() -> None:
    """Digests of plain values import neither NumPy nor torch."""
    code = (
        "import sys; from soma.cache._codec import encode; encode([{1: 'a'}]);"
        "print({'numpy', 'torch', 'pandas', 'polars', 'pyarrow', 'scipy'} & set(sys.modules))"
    )
    run = [sys.executable, "-c", code]
    env = {"PYTHONPATH": ":".join(sys.path)}
    fresh = subprocess.run(run, capture_output=True, text=True, env=env, check=True)

    assert fresh.stdout.strip() == "set()"


def test_digests_stay_from_version_to_version() -> None:
    """These digests stand in stores. If one changes, so must the number in `VALUE`."""
    assert digest(None)[:16] == "6397d39b65ac33b4"
    assert digest([1, 2.5, {"a": (True, b"x")}])[:16] == "858c9b707a1bcbb4"
    assert digest(np.arange(1000.0))[:16] == "c5bfb90134f02a21"
    assert digest([0.5] * 100)[:16] == "5b64258ea607c4a7"


class Dict(dict[str, int]):
    """A dict that may behave in its own way."""


def held_by_itself() -> object:
    """Make a list that holds itself."""
    value: list[object] = [1]
    value.append({"back": value})
    return value


def deep() -> object:
    """Make a list of 100,000 levels."""
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    return value


REFUSED: list[tuple[Callable[[], object], str, str]] = [
    (lambda: {"a": [1, object()]}, "['a'][1]", "`object` has no codec"),
    (lambda: Settings(0.1, [1, object()]), ".layers[1]", "`object` has no codec"),  # type: ignore[list-item]
    (lambda: {object(): 1}, "[a object] (the key)", "no codec"),
    (lambda: Dict(a=1), "", "a kind of dict, has no codec"),
    (lambda: [np.array([None])], "[0]", "an object array"),
    (lambda: np.ma.array([1, 2]), "", "MaskedArray"),
    (lambda: np.zeros(2, np.longdouble), "", "differs between machines"),
    (lambda: np.zeros(2, "i4,f8"), "", "has no codec"),
    (lambda: torch.eye(2).to_sparse(), "", "sparse"),
    (lambda: torch.empty(2, device="meta"), "", "meta device"),
    (lambda: (i for i in ()), "", "`generator` has no codec"),
    (lambda: sys.stdout, "", "has no codec"),
    (lambda: print, "", "has no codec"),
    (held_by_itself, "[1]['back']", "it holds itself"),
    (deep, "", "deeper than 1,000"),
]


@pytest.mark.parametrize(("make", "path", "reason"), REFUSED, ids=names(REFUSED))
def test_what_has_no_digest_says_where_and_why(
    make: Callable[[], object], path: str, reason: str
) -> None:
    """A value without a digest is refused with the path to it and a reason."""
    with pytest.raises(Undigestible) as refused:
        digest(make())

    assert refused.value.path == path
    assert reason in refused.value.reason
    assert isinstance(refused.value, SomaError)


def test_nesting_costs_no_stack() -> None:
    """A list of 999 levels has a digest, however deep the caller already is."""
    value: list[object] = []
    for _ in range(998):
        value = [value]

    assert digest(value) == digest(copy_by_hand(value))


def copy_by_hand(value: list[object]) -> list[object]:
    """Copy a deep list without recursion."""
    result: list[object] = []
    while value:
        (value,) = value  # type: ignore[assignment]
        result = [result]
    return result


def test_foreign_values_are_asked_for_by_path() -> None:
    """Bytes given for an unknown value stand for it, and None refuses it."""
    asked: list[str] = []

    def foreign(value: object, path: str) -> bytes | None:
        asked.append(path)
        return None if value is print else b"stands for it"

    known = digest({"f": [len]}, foreign=foreign)

    assert known == digest({"f": [abs]}, foreign=foreign) != digest({"f": [b"stands for it"]})
    assert asked == ["['f'][0]"] * 2
    with pytest.raises(Undigestible, match="`builtin_function_or_method` has no codec"):
        digest(print, foreign=foreign)


OTHERS = [("ab",), ("b", "a"), ("a", "b", None), ("a", 1), (None, "b"), ()]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_combined_digests_differ(other: tuple[str | int | None, ...]) -> None:
    """A key made of digests depends on each, on their order and on how many there are."""
    assert combine("a", "b") == combine("a", "b") != combine(*other)


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_takes_digests_of_large_values() -> None:
    """What the parent has started to hash with does not keep its child waiting."""
    code = """
import os, signal
from soma.cache import digest
value = bytes(20_000_000)
known = digest(value)
child = os.fork()
if not child:
    signal.alarm(20)
    os._exit(0 if digest(value) == known else 1)
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "0"


@pytest.mark.parametrize("size", [THREADED_FROM - 1, THREADED_FROM + 1])
def test_threads_that_hash_at_once_agree(size: int) -> None:
    """A hash is that of blake3, whoever has the threads just then."""
    data = random.Random(0).randbytes(size)
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(hash_bytes, [data] * 8))

    assert found == {blake3(data).digest()}
