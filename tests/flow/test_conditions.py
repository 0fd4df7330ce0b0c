"""Conditions and loops: which way they go, and that they end."""

from pathlib import Path
from typing import Any

import pytest

from soma import Flow
from soma.errors import InvalidInput, InvalidOutput
from soma.flow import LLM, Condition, Tool
from soma.testing import ScriptedModel
from soma.tracking import RouteLine, read_journal
from tests.flow.talking import only_run


def grow(number: int) -> int:
    """Add one."""
    return number + 1


def routes(folder: Path) -> list[str]:
    """Return the labels that were chosen in the only run below a folder."""
    return [line.label for line in read_journal(only_run(folder)) if isinstance(line, RouteLine)]


@pytest.mark.parametrize(("value", "output"), [(1, 2), (0, 0)])
def test_a_predicate_chooses_yes_or_no(tmp_path: Path, value: int, output: int) -> None:
    """True goes the way `yes`; a way that is None gives the value on."""
    flow = Flow.somatize(Condition(bool, {"yes": Tool(grow), "no": None}))

    assert flow.run(value, root=tmp_path).output == output


def test_true_and_false_are_labels_too(tmp_path: Path) -> None:
    """Cases may be given by what the predicate returns."""
    flow = Flow.somatize(Condition(bool, {True: Tool(grow), False: None}))  # type: ignore[dict-item]

    assert flow.run(1, root=tmp_path).output == 2
    assert routes(tmp_path) == ["yes"]


def test_a_function_chooses_a_label(tmp_path: Path) -> None:
    """Its text names the way."""
    cases = {"small": Tool(grow), "large": None}
    flow = Flow.somatize(Condition(lambda x: "small" if x < 10 else "large", cases))

    assert flow.run(1, root=tmp_path).output == 2


def test_an_unknown_label_is_an_error(tmp_path: Path) -> None:
    """The message has what came and what there is."""
    flow = Flow.somatize(Condition(lambda x: "smal", {"small": None, "large": None}))

    with pytest.raises(InvalidOutput, match=r"chose 'smal'.*Did you mean `small`\?"):
        flow.run(1, root=tmp_path)


def test_a_model_chooses_among_the_labels(tmp_path: Path) -> None:
    """It is asked with a schema that allows nothing else."""
    model = ScriptedModel(['{"label": "good"}'])
    flow = Flow.somatize(Condition(model, {"good": None, "bad": LLM()}), model=model)

    assert flow.run("fine", root=tmp_path).output == "fine"
    assert model.asked[0].messages[0].text.startswith("Which of these labels fits")
    assert "good, bad" in model.asked[0].messages[0].text


def test_an_llm_chooses_by_its_own_prompt(tmp_path: Path) -> None:
    """A label that there is not gets a turn to repair."""
    model = ScriptedModel(['{"label": "great"}', '{"label": "good"}'])
    ask = LLM(prompt="Judge {input}.", instructions="Be strict.")
    flow = Flow.somatize(Condition(ask, {"good": None, "bad": None}), model=model)

    assert flow.run("it", root=tmp_path).output == "it"
    assert [one.text for one in model.asked[0].messages] == ["Be strict.", "Judge it."]


def test_a_loop_runs_until_its_result_is_good(tmp_path: Path) -> None:
    """Each round works on what the last one gave."""
    flow = Flow.somatize(Condition.loop(Tool(grow), until=lambda x: x >= 3, at_most=9))

    assert flow.run(0, root=tmp_path).output == 3
    assert routes(tmp_path) == ["again", "again", "done"]


def test_a_model_may_end_a_loop(tmp_path: Path) -> None:
    """It is asked each round, and no round is mixed up with another."""
    model = ScriptedModel(['{"label": "no"}', '{"label": "yes"}'])
    flow = Flow.somatize(Condition.loop(Tool(grow), until=model, at_most=5))
    result = flow.run(0, root=tmp_path)

    assert (result.output, result.turns) == (2, 2)
    assert flow.resume(result.run_dir) == result
    assert model.asked[1].messages[0].text.endswith("yes, no?\n\n2")


def test_a_loop_ends_by_its_bound(tmp_path: Path) -> None:
    """It goes on with what there is, and the journal says so."""
    flow = Flow.somatize(Condition.loop(Tool(grow), until=lambda x: False, at_most=2))

    assert flow.run(0, root=tmp_path).output == 2
    assert routes(tmp_path) == ["again", "bound"]


def test_loops_and_conditions_are_in_each_other(tmp_path: Path) -> None:
    """Each place of a run has a name of its own."""
    body = Condition(lambda x: x % 2 == 0, {"yes": Tool(grow), "no": Tool(grow) >> Tool(grow)})
    flow = Flow.somatize(Condition.loop(body, until=lambda x: x > 6, at_most=9))
    result = flow.run(0, root=tmp_path)
    places = [line.at for line in read_journal(result.run_dir)]

    assert result.output == 7
    assert len(set(places)) == len(places)
    assert "loop/3/condition/no/grow_2/call" in places
    assert flow.resume(result.id, root=tmp_path).output == 7


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Condition(bool, {}),
        lambda: Condition("yes", {"yes": None}),  # type: ignore[arg-type]
        lambda: Condition(bool, {"a/b": None}),
        lambda: Condition.loop(Tool(grow), until=bool, at_most=0),
    ],
    ids=["no case", "a text", "a slash", "no round"],
)
def test_wrong_conditions_are_found_where_they_are_written(wrong: Any) -> None:
    """One that cannot work is refused by its constructor."""
    with pytest.raises(InvalidInput):
        wrong()
