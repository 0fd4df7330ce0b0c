"""The inside of a module as a picture: as executed, with branches, joins and cuts."""

from xml.dom import minidom

import pytest

from soma.draw import Box
from soma.viz._flow_picture import flow_diagram, flow_svg
from soma.viz._graph_picture import NodeNote
from tests.draw.diagrams import HOSTILE
from tests.viz.records import ENCODER, edge, flow, step


def boxes() -> dict[str, Box]:
    """Return the boxes of the encoder by their keys."""
    return {box.key: box for box in flow_diagram(ENCODER, {}).boxes}


def test_a_submodule_says_what_it_is() -> None:
    """A box shows path, class, parameters and the shape of its output."""
    shown = boxes()["ctx"]

    assert (shown.title, shown.lines) == ("ctx", ("Linear · 1.1k θ · 96\xd732",))
    assert [badge.text for badge in boxes()["branches.text.0"].badges] == ["■ frozen"]


def test_operations_are_small() -> None:
    """Operations, inputs and outputs take less room than submodules."""
    small = {key for key, box in boxes().items() if box.small}

    assert small == {"input", "cat_1", "add_1", "output"}


def test_containers_are_frames() -> None:
    """A container of several is a frame, nested as the paths are; one of a single box is not."""
    frames = {group.key: group.parent for group in flow_diagram(ENCODER, {}).groups}

    assert frames == {"branches": None, "branches.audio": "branches", "branches.text": "branches"}
    assert boxes()["branches.audio.1"].group == "branches.audio"
    assert boxes()["post.0"].group is None


def test_a_flag_on_a_container_is_on_its_frame() -> None:
    """A note for the path of a container makes it a frame, however few it holds."""
    notes = {"post": NodeNote(flags=("DEAD_CHANNELS(5)",))}
    (frame,) = [group for group in flow_diagram(ENCODER, notes).groups if group.key == "post"]

    assert [badge.text for badge in frame.badges] == ["▲ DEAD_CHANNELS(5)"]
    assert "DEAD_CHANNELS(5)" in flow_svg(ENCODER, notes)


@pytest.mark.parametrize("cut", ["detach", "numpy", "item", "no_grad"])
def test_a_cut_is_dashed_and_named(cut: str) -> None:
    """An edge that stops the gradient is dashed, says what stops it, and is in the legend."""
    inside = flow([step("a", "Linear"), step("b", "Linear")], [edge("a", "b", cut=cut)])
    shown = flow_diagram(inside, {})
    (arrow,) = shown.arrows

    assert (arrow.dashed, arrow.ink, arrow.label) == (True, "bad", f"✂ {cut}")
    assert shown.legend[-1].text == "✂ no gradient passes"


@pytest.mark.parametrize(
    ("share", "label"),
    [(1.0, ""), (0.37, "37 % of calls"), (0.001, "<1 % of calls"), (0.999, ">99 % of calls")],
)
def test_what_does_not_always_flow_says_how_often(share: float, label: str) -> None:
    """An edge of some calls only is labelled with their share."""
    inside = flow([step("a", "Linear"), step("b", "Linear")], [edge("a", "b", share=share)])

    assert flow_diagram(inside, {}).arrows[0].label == label


def test_a_second_call_is_a_box_of_its_own() -> None:
    """A module that is called twice stands twice, once for each call, and counts once."""
    inside = flow(
        [step("layer", "Linear", parameters=10), step("layer#2", "Linear")],
        [edge("layer", "layer#2")],
    )
    shown = flow_diagram(inside, {})

    assert [box.title for box in shown.boxes] == ["layer", "layer#2"]
    assert "1 submodule" in shown.subtitle


def test_why_a_flow_is_not_whole_is_said() -> None:
    """The note of a compiled module stands under the title, even if nothing was traced."""
    text = flow_svg(flow([], [], note="compiled: nothing was traced"))

    assert "compiled: nothing was traced" in text


def test_hostile_names_stay_text() -> None:
    """Paths and labels with markup make a well-formed picture."""
    nodes = [step(name, name, parameters=1) for name in HOSTILE if name]
    text = flow_svg(flow(nodes, [edge(nodes[0].id, nodes[1].id, cut=HOSTILE[0])]))
    tags = {each.tagName for each in minidom.parseString(text).getElementsByTagName("*")}

    assert tags.isdisjoint({"script", "img", "a", "foreignObject"})
