"""The report of a flow: the conversation on the page, and what is left of a very long one."""

import json
import re
from collections.abc import Iterable
from html import unescape
from pathlib import Path

import pytest

import soma
from soma.core import Message, ToolCall
from soma.tracking import JournalLine
from tests.viz.flows_made import (
    HOSTILE_TEXTS,
    LONG,
    asked,
    called,
    flown,
    hostile,
    judging,
    record_lines,
    tuning,
)
from tests.viz.reports_made import Page, tracked
from tests.viz.test_report import DRAWING, EVERY_WAY, PAGE, data_of


def said(page: str) -> str:
    """Return the text of the section of the conversation, in one line."""
    found = re.search(r'<section id="conversation".*?</section>', page, re.DOTALL)
    assert found
    return words(found[0])


def words(part: str) -> str:
    """Return the text of a part of a page, with a space for each tag and line break."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", part)).split())


def many(count: int, length: int) -> Iterable[JournalLine]:
    """Return an agent that calls a tool again and again, with long texts."""
    for turn in range(1, count + 1):
        one = ToolCall(id=f"call_{turn}", name="look", arguments=json.dumps({"at": turn}))
        yield asked(f"a/{turn}/model", "a", turn, Message(role="user", text=f"{turn} <" * length),
                    start=turn, text="é\n" * length, calls=(one,))  # fmt: skip
        yield called(f"a/{turn}/call_1", "a", turn, one, '"seen"\t' * length, start=turn + 0.5)


def test_it_reads_like_what_took_place(tmp_path: Path) -> None:
    """Turns, calls with their arguments and what came back stand below each other in order."""
    text = said(flown(tmp_path, tuning()).to_html())

    assert text.startswith(
        "Conversation 3 turns tune turn 1 small-1 · 900 → 60 tokens · 1.25 s system You tune a "
        "graph. Read its health first. user Make it better than 0.9. model I train once, and look "
        'at the health. train 500 ms {"width": 64, "lr": 0.1} accuracy 0.61 health 500 ms DEAD: '
        "layer `trunk.0` gives 0 for each row tune turn 2"
    )
    assert "delete ▲ call refused 500 ms" in text
    assert "train ✕ error 500 ms" in text


def test_routes_people_and_problems_are_told(tmp_path: Path) -> None:
    """A route is one line, an answer follows its question, and what went wrong has words."""
    text = said(flown(tmp_path, judging()).to_html())

    again = text.index("judge → again out of again, done · 2 times so far")
    assert text.index("judge.fix round 2") < again < text.index("judge.fix round 3")
    assert 'approve asks May the graph be kept? person {"yes":true}' in text
    for part in (
        "▲ not taken `score` is a string",
        "▲ cut off before its end",
        "✕ the model refused",
        "? outcome unknown",
        "write report.txt",
    ):
        assert part in text


@pytest.mark.parametrize("options", EVERY_WAY)
def test_what_a_model_writes_is_text(options: dict[str, bool], tmp_path: Path) -> None:
    """Markup, ANSI, bidi marks and control characters of models and tools change no page."""
    text = flown(tmp_path, hostile(), name=HOSTILE_TEXTS[0]).to_html(**options)
    page = Page(str(text))
    scripts = [tag for tag, _ in page.elements].count("script")

    assert scripts == (0 if "static" in options else 5 if "plotly" in options else 2)
    assert {tag for tag, _ in page.elements} <= PAGE | DRAWING
    assert not [sign for sign in "\x1b\u202e\u2066\0\x9b\x07" if sign in text]
    assert page.text.count(HOSTILE_TEXTS[0]) >= 3


def test_a_long_text_is_folded(tmp_path: Path) -> None:
    """Of 20,000 characters the first lines are seen; all of them are in the page."""
    text = flown(tmp_path, judging()).to_html()

    assert "19,199 more characters" in text
    assert all(line in text for line in LONG.splitlines())


@pytest.mark.parametrize("length", [1, 400])
def test_a_very_long_conversation_stays_small(length: int, tmp_path: Path) -> None:
    """Two thousand messages make less than a megabyte, and the foot says what is left out."""
    text = flown(tmp_path, many(1000, length)).to_html()

    assert len(text.encode()) < 1_000_000
    assert re.search(r"\d00 of 3,000 entries of the conversation are told.", text)
    assert ("Texts of the conversation are cut to" in text) == (length > 1)
    assert "entries are left out here" in said(text)
    assert "a turn 1 " in said(text)
    assert "a turn 1000 " in said(text)


def test_turns_and_tokens_are_summed(tmp_path: Path) -> None:
    """The table has a row for each node, and one for all."""
    text = flown(tmp_path).to_html()
    found = re.search(r'<section id="usage".*?</section>', text, re.DOTALL)
    assert found
    told = words(found[0])

    assert "tune 3 5,400 180 5.75 s train 2, health 1, delete 1 ✕ 1 error of tools" in told
    assert "judge again 2, done 1" in told
    assert "all 10 12,600 600 14.5 s 5 calls" in told


def test_what_a_flow_logs_of_its_nodes_is_told_once(tmp_path: Path) -> None:
    """Its turns and tokens have a table, and no curves; metrics of one's own are drawn."""
    with soma.track_run("flow", root=tmp_path) as run:
        record_lines(run.dir, tuning())
        run.log("tokens/tune", 900)
        run.log("score", 0.5)
    page = soma.RunView(run.dir).to_html()

    assert "1 metric<" in page
    assert data_of(page)["metrics"].keys() == {"tokens/tune", "score"}


def test_the_data_holds_the_conversation(tmp_path: Path) -> None:
    """A program finds entries and usage in `soma-data`."""
    data = data_of(flown(tmp_path, tuning()).to_html())

    assert data["conversation"][2]["calls"][0] == {
        "id": "call_1",
        "name": "train",
        "arguments": '{"width": 64, "lr": 0.1}',
    }
    assert data["conversation"][2]["tokens"] == [900, 60]
    assert data["usage"][0]["calls"]["train"] == {"ok": 1, "error": 1}


def test_other_runs_show_nothing_of_it(tmp_path: Path) -> None:
    """A run without a journal has neither section, and its data is empty there."""
    text = tracked(tmp_path).to_html()

    assert 'id="conversation"' not in text
    assert 'id="usage"' not in text
    assert data_of(text)["conversation"] == []
