"""The whole text of gradient diagnostics, case by case."""

from textwrap import dedent

import pytest

from soma.compiler import Compiler
from soma.core import Composable, Filter, Topology


class Scaler(Filter):
    _differentiable = True


class Linear(Filter):
    _differentiable = True
    _kind = "trainable"


class Trunk(Linear): ...


class Left(Linear): ...


class Right(Linear): ...


class Tree(Filter):
    _kind = "opaque"


class Rules(Filter): ...


def opaque(name: str) -> Filter:
    return type(name, (Tree,), {})()


def module(name: str) -> Filter:
    return type(name, (Linear,), {})()


def rendered(expression: Composable) -> str:
    topology = Topology()
    topology.add_expression(expression)
    return "\n\n".join(str(found) for found in Compiler().check_gradient_flow(topology))


def text(expected: str) -> str:
    return dedent(expected).strip("\n")


def test_a_filter_in_the_middle_cuts_off_what_is_above() -> None:
    """In a chain everything above the opaque filter is named as cut off."""
    assert rendered(Scaler() >> Tree() >> Linear()) == text(
        """
        warning[gradient]: Gradient flow interrupted at `Tree` (FilterKind::Opaque)
          --> pipeline node 2
          |
          | [Scaler] → [Tree] → [Linear]
          |            ^^^^^^
          |            This filter is not differentiable.
          |            Gradients from [Linear] do not reach [Scaler].
          |
          = help: Use a differentiable filter in its place, or move it into the prefix, above
                  everything that learns. Where its `forward` is made of torch operations on a
                  constant state, put `_differentiable = True` on its class.
        """
    )


def test_an_opaque_root_says_how_far_back_gradients_get() -> None:
    """An opaque filter at the top warns, and names where gradients end."""
    assert rendered(Tree() >> Scaler() >> Linear()) == text(
        """
        warning[gradient]: Gradient flow interrupted at `Tree` (FilterKind::Opaque)
          --> pipeline node 1
          |
          | [Tree] → [Scaler]
          | ^^^^^^
          | This filter is not differentiable.
          | Along this path gradients get back to [Scaler] and no further.
          |
          = help: This is as it should be if nothing before it has to learn and the input needs
                  no gradient; otherwise use a differentiable filter in its place. Where its
                  `forward` is made of torch operations on a constant state, put
                  `_differentiable = True` on its class.
        """
    )


def test_two_opaque_nodes_in_a_row_are_one_cut() -> None:
    """Linked opaque filters give one diagnostic, underlined together."""
    assert rendered(Scaler() >> Tree() >> Rules() >> Linear()) == text(
        """
        warning[gradient]: Gradient flow interrupted at `Tree` (FilterKind::Opaque) and 1 more
          --> pipeline node 2
          |
          | [Scaler] → [Tree] → [Rules] → [Linear]
          |            ^^^^^^^^^^^^^^^^
          |            These 2 filters are not differentiable.
          |            Gradients from [Linear] do not reach [Scaler].
          |
          = help: Use differentiable filters in their place, or move them into the prefix, above
                  everything that learns. Where their `forward` is made of torch operations on a
                  constant state, put `_differentiable = True` on their classes.
        """
    )


def test_an_open_side_path_makes_it_a_note() -> None:
    """Where another path still brings gradients, the note says which one."""
    assert rendered(Trunk() >> (Tree() >> Left() | Right())) == text(
        """
        note[gradient]: Gradient flow interrupted at `Tree` (FilterKind::Opaque)
          --> pipeline node 2
          |
          | [Trunk] → [Tree] → [Left]
          |           ^^^^^^
          |           This filter is not differentiable.
          |           Gradients from [Left] end here.
          |           Gradients still reach [Trunk] through [Right].
          |
          = help: This is as it should be if the other paths are enough; if not, use a
                  differentiable filter in its place. Where its `forward` is made of torch
                  operations on a constant state, put `_differentiable = True` on its class.
        """
    )


def test_a_closed_fan_in_names_every_branch() -> None:
    """An opaque filter that joins two branches cuts both off."""
    assert rendered((Left() | Right()) >> Tree() >> Linear()) == text(
        """
        warning[gradient]: Gradient flow interrupted at `Tree` (FilterKind::Opaque)
          --> pipeline node 3
          |
          | [Left] → [Tree] → [Linear]
          |          ^^^^^^
          |          This filter is not differentiable.
          |          Gradients from [Linear] do not reach [Left] and [Right].
          |
          = help: Use a differentiable filter in its place, or move it into the prefix, above
                  everything that learns. Where its `forward` is made of torch operations on a
                  constant state, put `_differentiable = True` on its class.
        """
    )


def test_of_two_heads_one_is_cut() -> None:
    """The head behind the cut is lost, the trunk above it still learns through the other."""
    assert rendered(Trunk() >> (Left() >> Tree() >> Linear() | Right())) == text(
        """
        warning[gradient]: Gradient flow interrupted at `Tree` (FilterKind::Opaque)
          --> pipeline node 3
          |
          | [Left] → [Tree] → [Linear]
          |          ^^^^^^
          |          This filter is not differentiable.
          |          Gradients from [Linear] do not reach [Left].
          |          Gradients still reach [Trunk] through [Right].
          |
          = help: Use a differentiable filter in its place, or move it into the prefix, above
                  everything that learns. Where its `forward` is made of torch operations on a
                  constant state, put `_differentiable = True` on its class.
        """
    )


def test_an_opaque_leaf_takes_the_loss_away() -> None:
    """A graph that ends in an opaque filter has nothing to train on."""
    assert rendered(Linear() >> Tree()) == text(
        """
        warning[gradient]: Gradient flow interrupted at `Tree` (FilterKind::Opaque)
          --> pipeline node 2
          |
          | [Linear] → [Tree]
          |            ^^^^^^
          |            This filter is not differentiable.
          |            No loss on [Tree] reaches anything above it.
          |            [Linear] gets no gradient from any leaf.
          |
          = help: Put a differentiable leaf beside it to train on, or use a differentiable
                  filter in its place. Where its `forward` is made of torch operations on a
                  constant state, put `_differentiable = True` on its class.
        """
    )


def test_an_opaque_leaf_beside_an_open_one_is_a_note() -> None:
    """A second, differentiable leaf keeps everything above learning."""
    assert rendered(Trunk() >> (Tree() | Right())) == text(
        """
        note[gradient]: Gradient flow interrupted at `Tree` (FilterKind::Opaque)
          --> pipeline node 2
          |
          | [Trunk] → [Tree]
          |           ^^^^^^
          |           This filter is not differentiable.
          |           No loss on [Tree] reaches anything above it.
          |           Gradients still reach [Trunk] through [Right].
          |
          = help: This is as it should be if the other paths are enough; if not, use a
                  differentiable filter in its place. Where its `forward` is made of torch
                  operations on a constant state, put `_differentiable = True` on its class.
        """
    )


def test_two_cuts_each_name_what_is_next_to_them() -> None:
    """What stands above two cuts belongs to the nearer one; a leaf says that it is one."""
    assert rendered(Scaler() >> Tree() >> Linear() >> Rules()) == text(
        """
        warning[gradient]: Gradient flow interrupted at `Tree` (FilterKind::Opaque)
          --> pipeline node 2
          |
          | [Scaler] → [Tree] → [Linear]
          |            ^^^^^^
          |            This filter is not differentiable.
          |            [Scaler] gets no gradient from any leaf.
          |
          = help: Use a differentiable filter in its place, or move it into the prefix, above
                  everything that learns. Where its `forward` is made of torch operations on a
                  constant state, put `_differentiable = True` on its class.

        warning[gradient]: Gradient flow interrupted at `Rules` (FilterKind::Stateless)
          --> pipeline node 4
          |
          | [Linear] → [Rules]
          |            ^^^^^^^
          |            This filter is not differentiable.
          |            No loss on [Rules] reaches anything above it.
          |            [Linear] gets no gradient from any leaf.
          |
          = help: Put a differentiable leaf beside it to train on, or use a differentiable
                  filter in its place. Where its `forward` is made of torch operations on a
                  constant state, put `_differentiable = True` on its class.
        """
    )


def test_a_root_above_a_second_cut_gets_nothing_back() -> None:
    """An opaque root over a closed branch says that no gradient comes near it."""
    first, _ = rendered(Rules() >> Linear() >> Tree()).split("\n\n")
    assert first == text(
        """
        warning[gradient]: Gradient flow interrupted at `Rules` (FilterKind::Stateless)
          --> pipeline node 1
          |
          | [Rules] → [Linear]
          | ^^^^^^^
          | This filter is not differentiable.
          | No gradient gets back this far: the flow is interrupted again below.
          |
          = help: This is as it should be if nothing before it has to learn and the input needs
                  no gradient; otherwise use a differentiable filter in its place. Where its
                  `forward` is made of torch operations on a constant state, put
                  `_differentiable = True` on its class.
        """
    )


def test_wide_letters_take_two_columns() -> None:
    """The mark stands under the label on a terminal, whatever the script."""
    assert rendered(module("名前") >> opaque("决策树") >> module("Éte\u0301")) == text(
        """
        warning[gradient]: Gradient flow interrupted at `决策树` (FilterKind::Opaque)
          --> pipeline node 2
          |
          | [名前] → [决策树] → [Éte\u0301]
          |          ^^^^^^^^
          |          This filter is not differentiable.
          |          Gradients from [Éte\u0301] do not reach [名前].
          |
          = help: Use a differentiable filter in its place, or move it into the prefix, above
                  everything that learns. Where its `forward` is made of torch operations on a
                  constant state, put `_differentiable = True` on its class.
        """
    )


def test_a_long_name_is_shortened_in_the_drawing_only() -> None:
    """The drawing cuts the middle out of a long label; the sentences keep it."""
    long = f"Extractor{'OfFeatures' * 4}"
    lines = rendered(module(long) >> Tree() >> Linear()).splitlines()

    assert lines[3:7] == [
        "  | [ExtractorOfFeaturesO…fFeaturesOfFeatures] → [Tree] → [Linear]",
        f"  |{' ' * 46}^^^^^^",
        f"  |{' ' * 46}This filter is not differentiable.",
        f"  |{' ' * 46}Gradients from [Linear] do not reach",
    ]
    assert lines[7] == f"  |{' ' * 46}[{long}]."


def test_two_nodes_of_one_class_carry_their_ids() -> None:
    """A class name that stands twice is told apart by the node's id."""
    assert rendered(Linear() >> Tree() >> Linear()) == text(
        """
        warning[gradient]: Gradient flow interrupted at `Tree` (FilterKind::Opaque)
          --> pipeline node 2
          |
          | [Linear (linear)] → [Tree] → [Linear (linear_2)]
          |                     ^^^^^^
          |                     This filter is not differentiable.
          |                     Gradients from [Linear (linear_2)] do not reach
          |                     [Linear (linear)].
          |
          = help: Use a differentiable filter in its place, or move it into the prefix, above
                  everything that learns. Where its `forward` is made of torch operations on a
                  constant state, put `_differentiable = True` on its class.
        """
    )


def test_a_long_run_is_elided() -> None:
    """Of five opaque filters in a row three are drawn, and all are counted."""
    run = opaque("A") >> opaque("B") >> opaque("C") >> opaque("D") >> opaque("E")
    lines = rendered(Scaler() >> run >> Linear()).splitlines()

    assert lines[0].endswith("at `A` (FilterKind::Opaque) and 4 more")
    assert lines[3:6] == [
        "  | [Scaler] → [A] → [B] → … → [E] → [Linear]",
        "  |            ^^^^^^^^^^^^^^^^^^^",
        "  |            These 5 filters are not differentiable.",
    ]


def test_many_names_are_cut_in_sentences() -> None:
    """A sentence names a few nodes and counts the others; the labels hold all of them."""
    branches = Left() | Right() | Trunk() | Scaler() | module("M") | module("N")
    topology = Topology()
    topology.add_expression(branches >> Tree() >> Linear())
    (found,) = Compiler().check_gradient_flow(topology)

    assert found.remarks[1].endswith("reach [Left], [Right], [Trunk], [Scaler] and 2 more.")
    assert sum(label.role == "cut-off" for label in found.labels) == 6


@pytest.mark.parametrize(
    "expression",
    [Rules() >> Tree() >> Rules(), Scaler() >> Linear(), Tree(), Rules() | Scaler()],
    ids=["only-opaque", "only-differentiable", "one", "unlinked"],
)
def test_nothing_to_say(expression: Composable) -> None:
    """A graph without differentiable nodes beside opaque ones is silent."""
    assert rendered(expression) == ""
