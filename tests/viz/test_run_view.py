"""`RunView` and `soma.runs`: what is told about a run, from its directory alone."""

import subprocess
import sys
from html.parser import HTMLParser
from json import dumps
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from msgspec import json
from nbclient import NotebookClient

import soma
from soma.core import FlowEdge, FlowNode, ModuleFlow
from soma.errors import InvalidInput, MissingExtra, NotRecorded, UnknownRun
from tests.viz.runs_made import HOSTILE, failed, fitted, logged


class Tags(HTMLParser):
    """Collects tags and attributes as a browser sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the names."""
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}


def test_what_a_view_says(tmp_path: Path) -> None:
    """Name, state and numbers, also without a graph."""
    view = logged(tmp_path, loss=[2.0, 1.0])

    assert (view.name, view.state, view.error, view.dir.name) == (
        *("numbers", "completed", None, view.id),
    )
    assert [point["value"] for point in view.metric_series("loss")] == [2.0, 1.0]
    assert repr(view) == f"RunView('{view.id}', completed)"


def test_timings_are_summed_by_node(tmp_path: Path) -> None:
    """Calls, seconds, mean and longest, and how many came from the cache."""
    timings = {one.node: one for one in fitted(tmp_path).node_timings()}
    center = timings["center"]

    assert list(timings) == ["load", "center"]
    assert center.calls >= 2
    assert center.cached >= 1
    assert center.mean == center.seconds / center.calls <= center.longest


def test_a_failed_node_is_counted(tmp_path: Path) -> None:
    """The view has the error, the node its failure."""
    view = failed(tmp_path)

    assert view.state == "failed"
    assert [(one.node, one.failed) for one in view.node_timings()] == [("load", 0), ("breaks", 1)]


def test_pictures_of_a_run(tmp_path: Path) -> None:
    """The graph is drawn with its times, as SVG, Mermaid, DOT and text."""
    view = fitted(tmp_path)

    assert ElementTree.fromstring(view.to_svg()).tag.endswith("svg")
    assert view.to_mermaid().startswith("flowchart")
    assert view.to_graphviz().startswith("digraph")
    assert "center (Center) ← load" in view.to_text()


def test_pictures_of_a_failed_run(tmp_path: Path) -> None:
    """What failed and what did not run is said in words."""
    lines = failed(tmp_path).to_text().splitlines()

    assert "breaks (Breaks) ← load  failed" in lines[2]
    assert lines[3].endswith("center (Center) ← breaks  not run")


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("center", "the inside of `center` was not recorded"),
        ("centre", "there is no node `centre`"),
    ],
)
def test_an_inside_that_was_not_recorded(node: str, said: str, tmp_path: Path) -> None:
    """The error says what is recorded instead."""
    with pytest.raises(NotRecorded, match=f"{said}.*it holds no module's inside"):
        fitted(tmp_path).to_svg(node=node)


def test_an_inside_that_was_recorded(tmp_path: Path) -> None:
    """It is drawn with the flags of its submodules, and told as text with its cuts."""
    view = fitted(tmp_path)
    inside = ModuleFlow(
        node="center", class_name="Center", parameters=4, trainable=4, calls=1, note=None,
        nodes=tuple(
            FlowNode(id=name, kind="module", label="Linear", path=name, parameters=2, trainable=2,
                     shape=(8, 2), detail="", share=1.0)
            for name in ("first", "second")
        ),
        edges=(FlowEdge(source="first", target="second", cut="detach", share=1.0),),
    )  # fmt: skip
    (view.dir / "modules.json").write_bytes(json.encode({"format": 1, "modules": [inside]}))
    flags = [{"node_id": "center/first", "flag": "VANISHING"}]
    (view.dir / "diagnostics" / "health.json").write_bytes(json.encode({"flags": flags}))

    assert "VANISHING" in view.to_svg(node="center")
    assert view.to_text("center").endswith("no gradient from first to second: detach")


def test_a_run_without_graph(tmp_path: Path) -> None:
    """Asking for its picture is an error that tells how to get one."""
    with pytest.raises(NotRecorded, match=r"has recorded no graph; start it with `g\.track_run`"):
        logged(tmp_path).to_svg()


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (None, []),
        (
            '{"flags": [{"node_id": "load", "flag": "NAN"}, 3]}',
            [{"node_id": "load", "flag": "NAN"}],
        ),
        ("[1", []),
        ("[]", []),
        ('{"flags": 1}', []),
    ],
)
def test_health_flags(text: str | None, flags: list[object], tmp_path: Path) -> None:
    """They are what an audit has written; nothing where none did, or the file is broken."""
    view = fitted(tmp_path)
    if text is not None:
        (view.dir / "diagnostics" / "health.json").write_text(text)

    assert view.health_flags() == flags
    assert ("NAN" in view.to_svg()) == bool(flags)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame(library: str, tmp_path: Path) -> None:
    """All points, as a frame of the library that is in use."""
    pytest.importorskip(library)
    view = logged(tmp_path, loss=[2.0, 1.0])
    code = (
        f"import sys, {library}, soma\nframe = soma.RunView(sys.argv[1]).frame()\n"
        f"assert isinstance(frame, {library}.DataFrame)\n"
        "print([*frame.columns], [*frame['value']], [*frame['step']])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(view.dir)], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "['name', 'step', 'value', 'time'] [2.0, 1.0] [0, 1]"


@pytest.mark.process
def test_no_frame_without_a_library(tmp_path: Path) -> None:
    """The error ends with the command that installs one."""
    view = logged(tmp_path, loss=[2.0])
    code = (
        "import sys; sys.modules.update(pandas=None, polars=None)\n"
        "import soma; soma.RunView(sys.argv[1]).frame()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(view.dir)], capture_output=True, text=True, check=False
    )

    assert done.stderr.endswith("pip install 'soma-graph[frames]'\n")


@pytest.mark.parametrize("make", [fitted, failed, logged])
def test_a_card_is_inert(make: object, tmp_path: Path) -> None:
    """A hostile name, tag, metric or error adds no tag, no script and no handler."""
    view = make(tmp_path)  # type: ignore[operator]
    page = view._repr_html_()
    seen = Tags(page)

    assert not seen.tags & {"script", "img", "iframe", "link", "a"}
    assert not [name for name in seen.names if name.startswith("on")]
    assert view.state in page
    assert "\x1b" not in page


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    """A broken run is among them, as unreadable; a folder without runs has none."""
    views = [logged(tmp_path) for _ in range(3)]
    (views[0].dir / "manifest.json").write_text("{")
    found = soma.runs(tmp_path)

    assert {view.id for view in found} == {view.id for view in views}
    assert {view.id: view.state for view in found}[views[0].id] == "unreadable"
    assert [view.id for view in found[:3] if view.state == "completed"] == [
        *(views[2].id, views[1].id),
    ]
    assert (len(soma.runs(tmp_path / "none")), repr(soma.runs(tmp_path / "none"))) == (0, "no runs")


def test_a_list_names_its_runs(tmp_path: Path) -> None:
    """In a terminal each line has how the run ended, its id and its name."""
    view = logged(tmp_path)

    line = repr(soma.runs(tmp_path))
    assert line.startswith(f"✓ completed   {view.id}  ")
    assert line.endswith("s  numbers")


def test_a_list_is_inert(tmp_path: Path) -> None:
    """A hostile name of a run stays text in the table."""
    fitted(tmp_path, HOSTILE)
    found = soma.runs(tmp_path)

    assert "img" not in Tags(found._repr_html_()).tags
    assert "\x1b" not in repr(found)


def test_no_such_run(tmp_path: Path) -> None:
    """A directory that is not there is an error that tells what to do."""
    with pytest.raises(UnknownRun, match=r"soma\.runs\(\)"):
        soma.RunView(tmp_path / "none")


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_a_saved_figure(suffix: str, tmp_path: Path) -> None:
    """A file holds all it needs; nothing in it asks for anything."""
    path = tmp_path / f"figure{suffix}"
    fitted(tmp_path).plot_metrics().save(path)
    text = path.read_text()

    assert "<svg" in text or "<html" in text
    assert 'src="http' not in text


@pytest.mark.parametrize("name", ["figure.jpeg", "figure", "none/figure.svg"])
def test_a_figure_that_cannot_be_saved(name: str, tmp_path: Path) -> None:
    """The error says what suffix there is, or that the folder is missing."""
    with pytest.raises(InvalidInput, match=r"`\.svg`, `\.html` or `\.png`|there is no folder"):
        logged(tmp_path, loss=[1.0]).plot_metrics().save(tmp_path / name)


@pytest.mark.slow
@pytest.mark.process
def test_a_png_without_chrome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names what to install, and what needs nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "none"))
    with pytest.raises(MissingExtra, match=r"apt install chromium; or save as `\.svg`"):
        logged(tmp_path, loss=[1.0]).plot_metrics().save(tmp_path / "figure.png")


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_notebook_shows_all_forms(tmp_path: Path) -> None:
    """In a real kernel a figure comes as Plotly, SVG and text, a view and a list as HTML."""
    view = fitted(tmp_path)
    code = [f"import soma; view = soma.RunView({str(view.dir)!r})", "view.plot_gantt()",
            "view.plot_metrics()", "view", f"soma.runs({str(tmp_path)!r})"]  # fmt: skip
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in code])
    NotebookClient(book, timeout=60, kernel_name="python3").execute()
    shown = [set(cell.outputs[0].data) for cell in book.cells[1:]]

    figure = {"application/vnd.plotly.v1+json", "image/svg+xml", "text/plain"}
    assert shown == [figure, figure, {"text/html", "text/plain"}, {"text/html", "text/plain"}]


def test_reading_needs_neither_torch_nor_plotly(tmp_path: Path) -> None:
    """A card, a picture and both figures come up in a process that loads neither."""
    view = fitted(tmp_path)
    code = (
        "import sys, soma\nview = soma.RunView(sys.argv[1])\n"
        "view.to_svg(), view._repr_html_(), view.plot_gantt()._repr_mimebundle_()\n"
        "view.plot_metrics().to_svg(), soma.runs(sys.argv[2])._repr_html_()\n"
        "assert not {'torch', 'numpy', 'plotly', 'pandas'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code, str(view.dir), str(tmp_path)], check=True)


def test_a_bundle_is_json(tmp_path: Path) -> None:
    """What a figure hands to a notebook is strict JSON, in spite of NaN in the record."""
    bundle = fitted(tmp_path).plot_metrics()._repr_mimebundle_()

    dumps(bundle, allow_nan=False)
