"""A branch that is learnt open, and what has done its work, are not VANISHING."""

from collections.abc import Sequence

import pytest

from tests.health.hand import STEPS, flags, measured, step, unit

FEW = [step(at) for at in range(12)]


def low(ratios: Sequence[float], values: float = 0.1) -> dict[str, float | Sequence[float] | None]:
    """Return a gradient by step, with outputs so small that the product is low too."""
    return {"out_grad_norm": list(ratios), "act_norm": values}


@pytest.mark.parametrize(("factor", "flag"), [(1.6, []), (1.1, ["VANISHING"])])
def test_a_branch_beside_the_way_of_the_gradient_may_open(factor: float, flag: list[str]) -> None:
    """Queries whose weights begin small get more with each step; a fixed factor lets by no more."""
    grows = low([2e-5 * factor**at for at in range(8)] + [2e-5 * factor**7] * 4)

    assert flags(measured({"net/b": grows}, steps=FEW)).get("net/b", []) == flag


def test_a_chain_has_no_other_way() -> None:
    """Growth from nearly nothing in the first layer is still to begin to learn."""
    grows = low([2e-5 * 1.6**at for at in range(8)] + [5e-4] * 4)

    assert flags(measured({"net/a": grows}, steps=FEW)) == {"net/a": ["VANISHING"]}


def test_one_large_step_is_no_growth() -> None:
    """The median of five steps grows where a branch opens."""
    grows = low([1e-4, 1e-4, 1e-4, 1.5e-3, 1e-4, 1e-4, 1e-4, 1e-4])

    assert flags(measured({"net/b": grows})) == {"net/b": ["VANISHING"]}


@pytest.mark.parametrize(("last", "flag"), [(0.01, []), (0.5, ["VANISHING"])])
def test_what_got_its_share_until_the_loss_was_gone_is_done(last: float, flag: list[str]) -> None:
    """A layer that others have made needless is none that the gradient did not reach."""
    losses = [1.0, 0.9, 0.8, 0.7, 0.6, *[last] * 7]
    steps = [step(at, loss=loss) for at, loss in enumerate(losses)]
    falls = low([0.1] * 5 + [1e-3] * 7, values=0.05)

    assert flags(measured({"net/a": falls}, steps=steps)).get("net/a", []) == flag


def test_hardly_anything_is_not_let_to_open() -> None:
    """A growth that ends below a hundredth of the line is none that helps."""
    grows = low([1e-7 * 2**at for at in range(STEPS)])

    assert flags(measured({"net/b": grows})) == {"net/b": ["VANISHING"]}


@pytest.mark.parametrize(
    ("moves", "share", "flag"),
    [(1e-3, 1e-3, []), (1e-6, 1e-3, ["VANISHING"]), (1e-3, 1e-5, ["VANISHING"])],
)
def test_a_part_of_the_output_may_have_its_own_unit(
    moves: float, share: float, flag: list[str]
) -> None:
    """An actor beside a critic's loss of thousands is well while it moves as the critic does."""
    units = [
        unit("actor", 0, own_trainable=0, feeds_output=True),
        unit("actor/a", 1),
        unit("critic", 2, own_trainable=0, feeds_output=True),
        unit("critic/a", 3),
    ]
    mine = {**low([share] * STEPS), "update_ratio": moves}
    found = measured({"actor": {"out_grad_norm": share}, "actor/a": mine}, units=units)

    assert flags(found).get("actor/a", []) == flag
