"""What is stored in which mode, and why not."""

import pytest

from soma.compiler import CompileMode, Compiler
from soma.core import Filter, Topology


class Plain(Filter): ...


class Volatile(Filter):
    _cacheable = False


class Random(Filter):
    _deterministic = False


def reasons(*, cache: object, mode: str, seed: int | None = None) -> list[str | None]:
    topology = Topology()
    topology.add_expression(Plain() >> Volatile() >> Random())
    plan = Compiler().compile(topology, cache, mode, seed=seed)
    return [step.uncached for step in plan.steps()]


def test_inference_stores_what_may_be_stored() -> None:
    """A filter that refuses, or is not deterministic, is left out with its reason."""
    assert reasons(cache=object(), mode="inference") == [
        None,
        "`Volatile` says `_cacheable = False`",
        "`Random` says `_deterministic = False` and no seed is given",
    ]


def test_a_seed_makes_a_random_filter_repeatable() -> None:
    """With a seed the output of a non-deterministic filter may be stored."""
    assert reasons(cache=object(), mode="inference", seed=0)[2] is None


@pytest.mark.parametrize(
    ("cache", "mode", "reason"),
    [
        (None, "inference", "no cache is attached"),
        (object(), "no_cache", "the mode `no_cache` stores nothing"),
        (
            object(),
            "differentiable",
            "the mode `differentiable` runs every forward anew, so that gradients can flow",
        ),
    ],
)
def test_one_reason_for_all(cache: object, mode: str, reason: str) -> None:
    """Where nothing is stored every step says why."""
    assert set(reasons(cache=cache, mode=mode)) == {reason}


def test_a_common_reason_is_printed_once() -> None:
    """A plan that stores nothing says so in its head; else the step itself says it."""
    topology = Topology()
    topology.add_expression(Plain() >> Volatile())

    assert str(Compiler().compile(topology)).splitlines()[0] == (
        "ExecutionPlan: inference, 2 nodes, nothing stored: no cache is attached"
    )
    assert str(Compiler().compile(topology, object())).splitlines()[-1] == (
        "   └─ volatile (not stored: `Volatile` says `_cacheable = False`)"
    )


def test_cacheable_means_without_a_reason() -> None:
    """A step may be stored when nothing speaks against it."""
    topology = Topology()
    topology.add_expression(Plain() >> Volatile())
    steps = Compiler().compile(topology, object()).steps()

    assert [step.cacheable for step in steps] == [True, False]


def test_a_wrong_mode_gets_a_guess() -> None:
    """A mode that does not exist is answered with the modes and the nearest one."""
    with pytest.raises(ValueError, match="'inferense' is no compile mode") as caught:
        CompileMode("inferense")
    assert str(caught.value).endswith("Did you mean `inference`?")


@pytest.mark.parametrize("value", [None, 3, True, ["inference"]])
def test_a_mode_is_a_word(value: object) -> None:
    """Other things than words are no modes either."""
    with pytest.raises(ValueError, match="is no compile mode; the modes are `inference`"):
        CompileMode(value)
