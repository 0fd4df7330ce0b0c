"""Any graph of modules comes back from its file as it was, and any damage to the file is told."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from soma import DifferentiableFilter, Graph
from soma.errors import CheckpointError
from tests.checkpoint.filters import loaded, members, rewritten
from tests.training.filters import Concatenate, Dense, Standardize, data

X, Y = data(rows=16)


class Normed(DifferentiableFilter):
    """A layer with buffers."""

    def build_module(self, input_shape):
        return nn.Sequential(nn.Linear(input_shape[-1], 6), nn.BatchNorm1d(6), nn.Dropout(0.2))


@st.composite
def graphs(draw: Any) -> Graph:
    """Any graph of a few modules that was perhaps built, trained, tied, cast and frozen."""
    g = Graph(cache=None, name=draw(st.sampled_from(["g", "a b", "é"])))
    ids = [g.node(draw(st.sampled_from([Dense(6), Standardize(), Normed()])))]
    for number in range(draw(st.integers(0, 4))):
        sources = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))
        single = draw(st.sampled_from([Dense(6), Normed(), Standardize()]))
        id = g.node(f"n.{number}&", Concatenate(6) if len(sources) > 1 else single)
        for source in sources:
            g.connect(source, id)
        ids.append(id)
    torch.manual_seed(draw(st.integers(0, 9)))
    g.fit(X, None, epochs=0)
    live = [filter._live for _, filter in g.filters() if getattr(filter, "_live", None)]
    linear = [part for module in live for part in module.modules() if isinstance(part, nn.Linear)]
    if linear and draw(st.booleans()):
        linear[-1].bias = linear[0].bias
    if live and draw(st.booleans()):
        g.to(dtype=draw(st.sampled_from([torch.float64, torch.bfloat16])))
    for parameter in list(g.parameters())[:: draw(st.integers(1, 3))]:
        parameter.requires_grad_(draw(st.booleans()))
    if live and draw(st.booleans()):
        g.freeze()
    return g


@settings(max_examples=60)
@given(graphs())
def test_any_graph_of_modules_comes_back(
    tmp_path_factory: pytest.TempPathFactory, g: Graph
) -> None:
    """Structure, weights, flags, ties and answers are the same after a load."""
    h = loaded(g, tmp_path_factory.mktemp("graph"), cache=None)
    mine, theirs = dict(g.named_parameters()), dict(h.named_parameters())

    assert (h.name, h.edges(), h.filter_ids()) == (g.name, g.edges(), g.filter_ids())
    assert list(mine) == list(theirs)
    assert all(same(one, theirs[name]) for name, one in mine.items())
    assert same_states(g.state(), h.state())
    assert [getattr(one, "_twin", None) is None for _, one in g.filters()] == [
        getattr(one, "_twin", None) is None for _, one in h.filters()
    ]


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same to the last bit."""
    return (one.dtype, one.requires_grad) == (other.dtype, other.requires_grad) and torch.equal(
        one, other
    )


def same_states(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two states of graphs hold the same tensors."""
    return list(one) == list(other) and all(
        list(one[id]) == list(other[id])
        and all(same(tensor, other[id][name]) for name, tensor in one[id].items())
        for id in one
    )


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return a bundle with all that modules add."""
    torch.manual_seed(0)
    g = Graph.somatize(Standardize() >> Normed() >> Dense(3), cache=None)
    g.fit(X, Y, epochs=1, progress=False)
    with torch.no_grad():
        g.filter("dense")._live.bias.add_(1.0)
    return g.save(tmp_path / "g.soma", optimizer=True, random=True) and tmp_path / "g.soma"


@pytest.mark.filterwarnings("ignore::soma.errors.CheckpointWarning")
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_mutated_bundle_loads_or_is_refused(bundle: Path, data: st.DataObject) -> None:
    """Bytes of a real bundle, changed anywhere, never give another error."""
    found = members(bundle)
    name = data.draw(st.sampled_from(["manifest.json", *sorted(found)]))
    text = bytearray(found[name])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    state = torch.get_rng_state()
    with suppress(CheckpointError):
        Graph.load(
            rewritten(bundle, lambda found: found.update({name: bytes(text)})),
            strict=data.draw(st.booleans()),
        )
    torch.set_rng_state(state)
