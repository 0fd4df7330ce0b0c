"""An error in a node reaches the caller as it is, and says where it comes from."""

import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from soma import Filter, Graph
from soma.engine import describe
from soma.testing import Recording
from tests.engine.filters import Plus, Raises, RaisesInFit, Same


class Reason(Exception):
    """An error that cannot be made again without its arguments."""

    def __init__(self, code, *, hint):
        super().__init__(f"code {code}")
        self.code = code
        self.hint = hint


def caught_from(g: Graph, x: object, *, fit: bool = False) -> BaseException:
    """Run a graph that fails, and return its error."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        g.fit(x) if fit else g.forward(x)
    return caught.value


@pytest.fixture(params=["sequential", "observed", "threads", "observed threads"])
def run_on(request: pytest.FixtureRequest):
    """Give a function that runs a graph in one of the loops, and returns its error."""

    def run(expression: object, x: object, *, fit: bool = False) -> BaseException:
        recording = Recording()
        with ThreadPoolExecutor(2) as pool:
            g = Graph(executor=pool if "threads" in request.param else None)
            g.topology.add_expression(expression)
            if "observed" not in request.param:
                return caught_from(g, x, fit=fit)
            with recording.of(g):
                return caught_from(g, x, fit=fit)

    return run


def test_the_error_itself_comes_out(run_on) -> None:
    """The same object, with all that it holds."""
    error = Reason(7, hint="look there")

    assert run_on(Same() >> Raises(error), 1) is error
    assert (error.code, error.hint, error.__cause__) == (7, "look there", None)


def test_the_traceback_ends_in_the_filter(run_on) -> None:
    """The last line is the one that raised."""
    error = run_on(Same() >> Raises(ValueError("no")), 1)
    last = traceback.extract_tb(error.__traceback__)[-1]

    assert last.name == "forward"
    assert last.filename.endswith("filters.py")


def test_the_note_names_node_class_phase_and_input(run_on) -> None:
    """One line says where, when and on what."""
    error = run_on(Plus(1) >> Raises(ValueError("no")), np.zeros((2, 3)))

    assert error.__notes__ == [
        "in node `raises` (Raises), during forward; its input: ndarray of float64, shape (2, 3)"
    ]


def test_the_note_tells_fit_from_forward(run_on) -> None:
    """In a fit, `forward` too is part of fitting."""
    for fragile in (Raises(ValueError("no")), RaisesInFit(ValueError("no"))):
        (note,) = run_on(Same() >> fragile, [1, 2], fit=True).__notes__
        assert note.endswith("during fit; its input: list of 2")


def test_the_note_of_a_fan_in_shows_every_part(run_on) -> None:
    """What each predecessor gave is described by its id."""

    class Join(Filter):
        def forward(self, x, state):
            raise KeyError("k")

    error = run_on((Same() | Plus(1)) >> Join(), torch.zeros(2, 3))
    shown = "Tensor of float32, shape (2, 3)"

    assert error.__notes__[0].endswith(f"dict {{'same': {shown}; 'plus': {shown}}}")


def test_a_graph_inside_a_filter_adds_its_own_note(run_on) -> None:
    """Notes tell the way from the inside out."""

    class Runs(Filter):
        def forward(self, x, state):
            return Graph.somatize(Raises(ValueError("no"))).forward([x])

    notes = run_on(Same() >> Runs(), 5).__notes__

    assert [note.partition(",")[0] for note in notes] == [
        "in node `raises` (Raises)",
        "in node `runs` (Runs)",
    ]
    assert notes[1].endswith("its input: int")


class Strange:
    """A value that cannot be looked at."""

    @property
    def shape(self):
        raise RuntimeError("still computing")


def test_an_input_that_cannot_be_described_hides_nothing(run_on) -> None:
    """The note falls back to the type."""
    error = run_on(Same() >> Raises(ValueError("no")), {"x": Strange()})

    assert isinstance(error, ValueError)
    assert error.__notes__[0].endswith("its input: dict {'x': Strange}")


@dataclass(frozen=True)
class Fixed(Exception):
    """An error that takes no notes."""

    code: int


def test_an_error_that_takes_no_notes_comes_out_all_the_same() -> None:
    """What cannot be noted is not replaced."""
    error = Fixed(3)

    assert caught_from(Graph.somatize(Raises(error)), 1) is error


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_fault_of_the_node_gets_no_note(run_on, kind: type[BaseException]) -> None:
    """Ctrl-C and exits pass through untouched."""
    error = kind()

    assert run_on(Same() >> Raises(error), 1) is error
    assert not hasattr(error, "__notes__")


def test_stop_iteration_is_an_error_like_others(run_on) -> None:
    """It does not end a loop of the engine's."""
    assert isinstance(run_on(Same() >> Raises(StopIteration("x")), 1), StopIteration)


def test_the_graph_runs_on_after_an_error() -> None:
    """The next call starts afresh."""
    fragile = Raises(ValueError("no"))
    g = Graph.somatize(Same() >> fragile >> Plus(1))
    caught_from(g, 1)
    fragile.error = None

    assert g.forward(1) == 2


DESCRIBED = {
    "None": None,
    "int": 3,
    "str of 6": "secret",
    "bytes of 2": b"ab",
    "list of 2": [1, 2],
    "tuple (int)": (1,),
    "set of 2": {1, 2},
    "dict {}": {},
    "dict {'a': list of 1; 'b': None}": {"a": [1], "b": None},
    "dict {'a': dict {'b': dict of 1}}": {"a": {"b": {"c": 1}}},
    "ndarray of float32, shape (2, 3)": np.zeros((2, 3), np.float32),
    "int64 of int64, shape ()": np.int64(3),
    "Tensor of int64, shape (2,)": torch.zeros(2, dtype=torch.int64),
    "Strange": Strange(),
    "Same": Same(),
}


@pytest.mark.parametrize(("text", "value"), DESCRIBED.items(), ids=list(DESCRIBED))
def test_a_value_is_described_by_type_and_size(text: str, value: object) -> None:
    """Its content is nobody's business."""
    assert describe(value) == text


def test_a_wide_mapping_is_cut() -> None:
    """A note stays one short line."""
    text = describe({f"key{index}": index for index in range(1_000)})

    assert text.count("key") == 8
    assert text.endswith("; …}")
