"""`soma.runs().to_html()`: what is on the page of several runs, read as a program reads it."""

import json
import re
import shutil
from math import inf, nan
from pathlib import Path
from xml.etree import ElementTree

import pytest

import soma
from soma.errors import InvalidInput
from soma.viz import RunList
from tests.viz.reports_made import Page, named
from tests.viz.studies_made import study
from tests.viz.test_report import DRAWING, EVERY_WAY, NAMES, PAGE, data_of

SECTIONS = ["overview", "runs", "metrics", "params", "ends", "health"]
PARTS = PAGE | DRAWING | {"small"}


def rows_of(page: str) -> list[list[str]]:
    """Return the texts of the table of runs."""
    (table,) = re.findall(r'<table class="sortable">(.*?)</table>', page, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    cells = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row) for row in rows]
    return [[re.sub(r"<.*?>", " ", cell).strip() for cell in row] for row in cells]


def logged(root: Path, name: str, metric: str, *values: float, **params: object) -> None:
    """Keep a run with one metric."""
    with soma.track_run(name, params=params, root=root) as run:
        for value in values:
            run.log(metric, value)


@pytest.mark.parametrize("options", EVERY_WAY)
def test_every_section(options: dict[str, bool], tmp_path: Path) -> None:
    """A study with something for each section has them, and no address leads out of the page."""
    study(tmp_path, 9)
    page = Page(soma.runs(tmp_path).to_html(**options))
    sections = [attributes["id"] for tag, attributes in page.elements if tag == "section"]
    links = {kept["href"] for _, kept in page.elements if "href" in kept}

    assert sections == SECTIONS
    assert links == {"#content", "data:,", *(f"#{name}" for name in SECTIONS)}
    assert "digits · soma report" in page.text


def test_the_best_come_first(tmp_path: Path) -> None:
    """Trials are ranked by the goal of their study, which each of them is tagged with."""
    study(tmp_path, 9)
    data = data_of(soma.runs(tmp_path).to_html())
    best = [run["metrics"]["value"]["greatest"] for run in data["runs"]]

    assert data["goal"] == {"metric": "value", "better": "greatest"}
    assert best == sorted(best, reverse=True)


@pytest.mark.parametrize(
    ("metric", "first"),
    [("validation_loss", "low"), ("val/acc", "high"), ("speed", "high"), ("loss_score", "high")],
)
def test_better_by_name(metric: str, first: str, tmp_path: Path) -> None:
    """Names that say what is better rank the runs; with others the newest stands first."""
    logged(tmp_path, "low", metric, 1.0)
    logged(tmp_path, "high", metric, 2.0)
    page = soma.runs(tmp_path).to_html()

    assert rows_of(page)[1][0] == first
    assert ("least" in " ".join(rows_of(page)[0])) == (metric in ("speed", "loss_score"))


def test_params_that_differ(tmp_path: Path) -> None:
    """The table has what differs, the head what is the same in all."""
    for rate in (0.1, 0.2):
        logged(tmp_path, f"{rate}", "loss", rate, rate=rate, layers=[8, 8])
    head, *rows = rows_of(soma.runs(tmp_path).to_html())

    assert head[:5] == ["run", "state", "health", "took", "rate"]
    assert [row[4] for row in rows] == ["0.1", "0.2"]
    assert "layers" not in head
    assert "The same in all runs" in soma.runs(tmp_path).to_html()


def test_a_param_that_a_run_lacks(tmp_path: Path) -> None:
    """A param of one run alone differs, and its cell in the other is empty."""
    logged(tmp_path, "with", "loss", 1.0, rate=True)
    logged(tmp_path, "without", "loss", 2.0)

    assert [row[4] for row in rows_of(soma.runs(tmp_path).to_html())] == ["rate", "true", ""]


def test_health_in_a_word(tmp_path: Path) -> None:
    """Each run has a verdict, with its worst finding where there is one."""
    study(tmp_path, 5)
    told = {row[0]: row[2] for row in rows_of(soma.runs(tmp_path).to_html())}

    assert told["digits #0"] == "no audit"
    assert told["digits #4"] == "✓ healthy"
    assert told["digits #1"].startswith("✕ sick")
    assert "VANISHING at net/layers.2 and 2 more" in told["digits #1"]


def test_why_they_ended(tmp_path: Path) -> None:
    """Runs that were pruned or failed are listed with the reason, those that completed are not."""
    study(tmp_path, 9)
    text = Page(soma.runs(tmp_path).to_html()).text
    ended = text[text.index("Each run that did not complete") : text.rindex("Health")]

    assert "Pruned: DEAD at net/layers.0" in ended
    assert "RuntimeError: mat1 and mat2" in ended
    assert "digits #3" not in ended


def test_names_that_are_the_same(tmp_path: Path) -> None:
    """Runs of one name are told apart by the end of their ids."""
    for _ in range(2):
        logged(tmp_path, "again", "loss", 1.0)
    labels = [row[0] for row in rows_of(soma.runs(tmp_path).to_html())[1:]]

    assert sorted(labels) == sorted(f"again ({run.id[-6:]})" for run in soma.runs(tmp_path))


@pytest.mark.parametrize(
    "broken", ["manifest.json", "status.json", "metrics.jsonl", "diagnostics/audit.jsonl"]
)
@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 99}', "\0\0"])
def test_a_broken_run(broken: str, content: str, tmp_path: Path) -> None:
    """A run that cannot be read is a row, and the others are whole."""
    views = study(tmp_path, 3)
    (views[1].dir / broken).write_text(content)
    rows = rows_of(soma.runs(tmp_path).to_html())

    assert len(rows) == 1 + 3
    unreadable = broken in ("manifest.json", "status.json")
    assert sum("unreadable" in row[1] for row in rows) == unreadable


def test_a_run_that_goes_on_and_one_that_is_gone(tmp_path: Path) -> None:
    """A running run says so; one that was removed is counted at the foot."""
    study(tmp_path, 2)
    with soma.track_run("now", root=tmp_path) as going:
        going.log("value", inf)
        runs = soma.runs(tmp_path)
        shutil.rmtree(runs[1].dir)
        page = runs.to_html()

    assert "It was going on when this report was made." in page
    assert "1 run had been removed before this report was made." in page


@pytest.mark.parametrize("values", [(nan,), (inf, -inf), (0.0, -1.0), (1e300, 1e-300), (1.0,)])
def test_values_of_any_kind(values: tuple[float, ...], tmp_path: Path) -> None:
    """Whatever was logged, there is a page, and its data is strict JSON."""
    for number in range(4):
        logged(tmp_path, f"run {number}", "loss", *values, rate=10.0**-number)
    page = soma.runs(tmp_path).to_html(plotly=True)

    assert len(data_of(page)["runs"]) == 4
    assert json.dumps(data_of(page), allow_nan=False)


@pytest.mark.parametrize("count", [0, 1])
def test_few_runs(count: int, tmp_path: Path) -> None:
    """No run and one run have a page too."""
    study(tmp_path, count)

    assert len(data_of(soma.runs(tmp_path).to_html())["runs"]) == count


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_no_markup(name: str, options: dict[str, bool], tmp_path: Path) -> None:
    """Whatever runs and all in them are called, elements and attributes are those of the page."""
    views = [named(tmp_path, name), named(tmp_path, name)]
    page = Page(RunList(views).to_html(**options))
    tags = [tag for tag, _ in page.elements]
    attributes = {key for _, kept in page.elements for key in kept}

    assert tags.count("script") == (0 if "static" in options else 5 if "plotly" in options else 2)
    assert set(tags) <= PARTS
    assert not [key for key in attributes if key.startswith("on") or key in ("src", "autofocus")]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_moves_nothing(name: str, tmp_path: Path) -> None:
    """No control, no bidi mark and no half of a pair is on the page, and its SVG is XML."""
    text = RunList([named(tmp_path, name), named(tmp_path, name)]).to_html()
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(picture)

    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", text
    )
    assert text.encode()


def test_plotly_and_static(tmp_path: Path) -> None:
    """Both together are refused."""
    with pytest.raises(InvalidInput, match="leave one"):
        soma.runs(tmp_path).to_html(plotly=True, static=True)


def test_long_curves_are_thinned(tmp_path: Path) -> None:
    """Many points come as few, extremes among them, and the foot says so."""
    for number in range(12):
        logged(
            tmp_path, f"run {number}", "loss", *(9.0 if at == 777 else 1.0 for at in range(5000))
        )
    page = soma.runs(tmp_path).to_html()
    curves = [run["metrics"]["loss"] for run in data_of(page)["runs"]]

    assert max(len(curve["step"]) for curve in curves) <= 1000
    assert {(curve["logged"], curve["greatest"]) for curve in curves} == {(5000, 9.0)}
    assert "12 of 12 curves are thinned, to " in page


@pytest.mark.slow
def test_a_large_study_is_bounded(tmp_path: Path) -> None:
    """Of 310 trials the best 300 are listed and 100 drawn, in less than 5 MB, with Plotly too."""
    study(tmp_path, 310, points=60)
    page = soma.runs(tmp_path).to_html(plotly=True)

    assert len(page.encode()) < 5_000_000
    assert len(rows_of(page)) == 1 + 300
    assert "The first 300 of 310 runs are in this file, the best where known." in page
    assert "Figures draw the first 100 of these." in page


def test_tagged(tmp_path: Path) -> None:
    """`tagged` leaves the trials of one study."""
    study(tmp_path, 2)
    study(tmp_path, 3, "letters")

    assert [run.name for run in soma.runs(tmp_path).tagged("digits")] == ["digits #1", "digits #0"]
