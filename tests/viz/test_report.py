"""`view.to_html()`: what is on the page of a report, read as a program reads it."""

import json
import re
import subprocess
import sys
from math import inf, isnan, nan
from pathlib import Path
from xml.etree import ElementTree

import pytest

import soma
from soma import RunView
from soma.errors import InvalidInput
from soma.tracking import GraphRecord, NodeRecord
from tests.viz.reports_made import Page, named, tracked

SECTIONS = ["overview", "graph", "inside", "metrics", "timeline", "diagnostics", "environment"]
EVERY_WAY = [{}, {"static": True}, {"plotly": True}]
NAMES = [
    "<TR>",
    "</script><script>alert(1)</script>",
    "</pre></template></style><b>",
    '" onload="alert(1)',
    "' autofocus onfocus='alert(1)",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "\u2028alert(1)\u2029",
    "nul\0alert(1)",
    "\ud800alert(1)",
    "\u202ealert(1)\u2066",
    "\x1b[2Jalert(1)",
    "{{ 7 * 7 }}{% raw %}alert(1)",
    "]]>&amp;&#60;alert(1)",
    "--><!--alert(1)",
]
PAGE = {
    "a", "b", "body", "caption", "code", "dd", "details", "div", "dl", "dt", "fieldset",
    "footer", "h1", "h2", "h3", "head", "header", "html", "input", "label", "legend", "li",
    "link", "main", "meta", "nav", "p", "pre", "script", "section", "span", "style", "summary",
    "table", "tbody", "td", "th", "thead", "title", "tr", "ul",
}  # fmt: skip
DRAWING = {"circle", "desc", "g", "path", "polygon", "rect", "svg", "text"}


def data_of(page: str) -> dict[str, object]:
    """Read the data section, as anybody would."""
    found = re.search(r'<(\w+)[^>]* id="soma-data"[^>]*>(.*?)</\1>', page, re.DOTALL)
    assert found
    return json.loads(found[2])


@pytest.mark.parametrize("options", EVERY_WAY)
def test_every_section(options: dict[str, bool], tmp_path: Path) -> None:
    """A run that has something for each section has them in the order of the page, with links."""
    page = Page(tracked(tmp_path).to_html(**options))
    sections = [attributes["id"] for tag, attributes in page.elements if tag == "section"]
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]

    assert sections == SECTIONS
    assert links == ["#content", *(f"#{name}" for name in SECTIONS)]


@pytest.mark.parametrize("options", EVERY_WAY)
def test_nothing_is_asked_for(options: dict[str, bool], tmp_path: Path) -> None:
    """No address leads out of the page, and a policy forbids the rest."""
    page = Page(tracked(tmp_path).to_html(**options))
    places = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "href", "action", "data", "poster", "srcset")
    ]
    policies = [
        attributes["content"] for _, attributes in page.elements if "http-equiv" in attributes
    ]

    assert {place for place in places if place and place[0] != "#"} == {"data:,"}
    assert len(policies) == 1
    assert str(policies[0]).startswith("default-src 'none'; img-src data:; ")


def test_a_static_page_has_no_script(tmp_path: Path) -> None:
    """Neither code nor data stand in a script, and the policy allows none."""
    text = tracked(tmp_path).to_html(static=True)

    assert not {"script", "iframe", "object"} & {tag for tag, _ in Page(text).elements}
    assert "script-src" not in text


def test_scripts_carry_the_nonce(tmp_path: Path) -> None:
    """Each script that runs has the nonce of the policy, and no two pages have the same."""
    view = tracked(tmp_path)
    nonces = set()
    for text in (view.to_html(), view.to_html()):
        (nonce,) = set(re.findall(r'<script nonce="([^"]+)"', text))
        assert f"script-src &#39;nonce-{nonce}&#39;" in text
        nonces.add(nonce)

    assert len(nonces) == 2


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_no_markup(name: str, options: dict[str, bool], tmp_path: Path) -> None:
    """Whatever a run and all in it are called, elements and attributes are those of the page."""
    page = Page(named(tmp_path, name).to_html(**options))
    tags = [tag for tag, _ in page.elements]
    attributes = {key for _, kept in page.elements for key in kept}
    links = {kept["href"] for _, kept in page.elements if "href" in kept}

    assert tags.count("script") == (0 if "static" in options else 5 if "plotly" in options else 2)
    assert set(tags) <= PAGE | DRAWING
    assert not [key for key in attributes if key.startswith("on") or key in ("src", "autofocus")]
    assert {link for link in links if link and link[0] != "#"} == {"data:,"}
    assert "alert(1)" in page.text or name in NAMES[:1] or name in NAMES[2:3]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_moves_nothing(name: str, tmp_path: Path) -> None:
    """No control, no bidi mark and no half of a pair is on the page, and its SVG is XML."""
    text = named(tmp_path, name).to_html()
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(picture)

    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", text
    )
    assert text.encode()


@pytest.mark.parametrize("name", ["</script>", "a\u2028b", "<b>&", "nul\0", "ü"])
@pytest.mark.parametrize("static", [False, True])
def test_data_keeps_names(name: str, static: bool, tmp_path: Path) -> None:
    """A program reads every name as it was given."""
    data = data_of(named(tmp_path, name).to_html(static=static))

    assert data["run"]["name"] == name
    assert [node["id"] for node in data["graph"]["nodes"]] == [name]
    assert (*data["metrics"],) == (name,)


def test_data_holds_the_run(tmp_path: Path) -> None:
    """Format, state, numbers of nodes and points; what is not finite as the record writes it."""
    view = tracked(tmp_path)
    data = data_of(view.to_html())
    values = data["metrics"]["validation_loss"]["value"]

    assert (data["format"], data["run"]["state"]) == (1, "completed")
    assert data["run"]["params"] == {"lr": 0.1}
    assert [node["node"] for node in data["nodes"]] == ["load", "center"]
    assert (values[2:5], len(values)) == ([3.0, "NaN", 5.0], 20)
    assert data["left_out"] == []
    assert data["modules"][0]["edges"][0]["cut"] == "detach"


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ("Takes an offset away that it has learnt.", "doc"),
        ("weight0.25", "config"),
        ("look-ups", "cache"),
        ("first time", "why it ran"),
        ("Gradient stops at center", "diagnostics"),
        ("no gradient passes", "inside"),
        ("cache misses", "tiles"),
        ("1 point of validation_loss not finite, at step 3.", "metrics"),
        ("Nothing was left out", "foot"),
    ],
)
def test_what_a_reader_finds(said: str, where: str, tmp_path: Path) -> None:
    """The page tells, also without a script."""
    text = Page(tracked(tmp_path).to_html(static=True)).text

    assert "".join(said.split()) in "".join(text.split()), where


def test_a_failed_run(tmp_path: Path) -> None:
    """The error is at the top, and again at the node that raised it."""
    text = Page(named(tmp_path, "boom").to_html()).text

    assert "The run ended with an error." in text
    assert text.count("ValueError: boom") >= 1


@pytest.mark.parametrize("state", ["running", "crashed", "unreadable"])
def test_a_run_that_did_not_end(state: str, tmp_path: Path) -> None:
    """The report of a run that goes on, has died or cannot be read says so."""
    with soma.track_run("now", root=tmp_path) as going:
        going.log("loss", 1.0)
        status = json.loads((going.dir / "status.json").read_text())
        if state == "crashed":  # an id that no process has
            (going.dir / "status.json").write_text(json.dumps(status | {"pid": 2**22 - 3}))
        if state == "unreadable":
            (going.dir / "manifest.json").write_text("{")
        text = RunView(going.dir).to_html()

    assert f'class="state {state}"' in text
    assert data_of(text)["run"]["state"] == state


@pytest.mark.parametrize(
    "file", ["graph.json", "modules.json", "events.jsonl", "diagnostics/compile.json"]
)
@pytest.mark.parametrize("content", ["", "[1", "null", '{"format": 99}'])
def test_a_broken_file(file: str, content: str, tmp_path: Path) -> None:
    """The report of what is left comes without an error."""
    view = tracked(tmp_path)
    (view.dir / file).write_text(content)

    assert "first try" in Page(view.to_html()).text


def test_an_empty_run(tmp_path: Path) -> None:
    """A run in which nothing happened has a head and surroundings."""
    with soma.track_run("nothing", root=tmp_path) as run:
        pass
    page = Page(RunView(run.dir).to_html(plotly=True))

    assert [a["id"] for tag, a in page.elements if tag == "section"] == ["overview", "environment"]


def test_a_usual_run_is_small(tmp_path: Path) -> None:
    """Fifteen metrics of 2,000 points take less than 1 MB, and the foot says what is there."""
    with soma.track_run("usual", root=tmp_path) as run:
        for step in range(2000):
            for name in range(15):
                run.log(f"metric {name}", (step * 7919 % 1000) / 997 + name, step=step)
    text = RunView(run.dir).to_html()

    assert len(text.encode()) < 1_000_000
    assert "Of the 30,000 points of 15 metrics, " in text
    assert data_of(text)["metrics"]["metric 3"]["logged"] == 2000


def test_a_large_graph(tmp_path: Path) -> None:
    """Of a graph of 1,200 nodes the page lists 1,000 and says so; the data holds all."""
    nodes = tuple(
        NodeRecord(id=f"n{number}", class_name="Node", kind="stateless", has_module=False,
                   parameters=None, trainable=None, config={}, doc="")
        for number in range(1200)
    )  # fmt: skip
    with soma.track_run("large", root=tmp_path) as run:
        run.record_graph(GraphRecord(name="large", nodes=nodes, edges=()))
    text = RunView(run.dir).to_html()

    assert text.count('<details class="node"') == 1000
    assert "1,000 of 1,200 nodes are listed; the data holds all." in text
    assert len(data_of(text)["graph"]["nodes"]) == 1200


def test_extremes_survive(tmp_path: Path) -> None:
    """Of a metric that is thinned a spike, the first NaN and the last point stay."""
    with soma.track_run("spiky", root=tmp_path) as run:
        for step in range(9000):
            run.log("x", {4321: 1e6, 6000: nan, 6001: -inf}.get(step, 1.0), step=step)
    x = data_of(RunView(run.dir).to_html())["metrics"]["x"]

    assert len(x["step"]) <= 1000
    assert (x["step"][-1], max(v for v in x["value"] if isinstance(v, float))) == (8999, 1e6)
    assert "NaN" in x["value"]
    assert not any(isinstance(value, float) and isnan(value) for value in x["value"])


def test_plotly_and_static(tmp_path: Path) -> None:
    """Both together are refused."""
    with pytest.raises(InvalidInput, match="leave one"):
        tracked(tmp_path).to_html(plotly=True, static=True)


def test_plotly_is_about_2_mb(tmp_path: Path) -> None:
    """The installed Plotly comes compressed."""
    size = len(tracked(tmp_path).to_html(plotly=True))

    assert 1_000_000 < size < 2_600_000


def test_a_report_needs_neither_torch_nor_plotly(tmp_path: Path) -> None:
    """A page is made in a process that loads neither."""
    code = (
        "import sys, soma\nsoma.RunView(sys.argv[1]).to_html()\n"
        "assert not {'torch', 'numpy', 'plotly', 'pandas'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code, str(tracked(tmp_path).dir)], check=True)
