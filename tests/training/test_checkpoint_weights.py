"""Weights come back bit for bit, tied where they were tied, in the types they had."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

from soma import DifferentiableFilter, Filter, Graph
from soma.errors import CheckpointError, CheckpointWarning
from tests.checkpoint.filters import edited, loaded, members, rewritten
from tests.training.filters import Concatenate, Dense, Gated, Standardize, data

X, Y = data()
NAN = torch.tensor([0x7FC12345, -0x3EDCBB, 0x7F800001], dtype=torch.int32).view(torch.float32)


class Various(DifferentiableFilter):
    """A module of many kinds of weights, buffers and modes."""

    def build_module(self, input_shape):
        module = nn.Sequential(nn.BatchNorm1d(input_shape[-1]), nn.Dropout(0.5))
        module.register_buffer("counter", torch.zeros((), dtype=torch.int64))
        module.register_buffer("mask", torch.ones(3, dtype=torch.bool))
        module.register_buffer("odd", torch.zeros(3))
        module.register_buffer("empty", torch.zeros(0, 4))
        module.register_buffer("none", None)
        module.register_buffer("passing", torch.arange(4.0), persistent=False)
        return module


class Tied(DifferentiableFilter):
    """Two layers that are one weight, or not."""

    def build_module(self, input_shape):
        module = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6))
        if self.tie:
            module[2].weight = module[0].weight
        return module


class Holding(Filter):
    """A plain filter with weights of its own, drawn when it is made."""

    _differentiable = True

    def __init__(self) -> None:
        self.net = nn.Linear(6, 6)
        self.table = torch.randn(4)

    def forward(self, x, state):
        return self.net(x)


def built(*filters: Filter) -> Graph:
    """Return a chain whose modules are built."""
    expression: Any = filters[0]
    for one in filters[1:]:
        expression = expression >> one
    torch.manual_seed(0)
    return Graph.somatize(expression, cache=None).materialize(X)


def live(g: Graph, id: str) -> nn.Module:
    """Return a node's live module."""
    return g.filter(id)._live


def bits(tensor: Tensor) -> tuple[Any, ...]:
    """Return all there is to say of a tensor."""
    raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist()
    return tensor.dtype, tuple(tensor.shape), tensor.requires_grad, raw


def all_bits(module: nn.Module) -> dict[str, Any]:
    """Return the bits of all weights and buffers."""
    named = [*module.named_parameters(), *module.named_buffers()]
    return {name: bits(one) for name, one in named}


DTYPES = [
    torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.complex128,
    torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu, torch.uint16, torch.uint64,
    torch.int8, torch.bool,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_comes_back(tmp_path: Path, dtype: torch.dtype) -> None:
    """A buffer keeps its type and every bit, whatever `build_module` makes."""
    g = built(Various())
    raw = torch.randint(0, 2 if dtype is torch.bool else 256, (48,), dtype=torch.uint8)
    live(g, "various").odd = raw.view(dtype)[:3]
    h = loaded(g, tmp_path)

    assert all_bits(live(h, "various")) == all_bits(live(g, "various"))


def test_nan_payloads_and_negative_zeros_come_back(tmp_path: Path) -> None:
    """NaN is no one value, and -0.0 is none other than itself."""
    g = built(Various(), Dense(3))
    module = live(g, "various")
    module.odd.copy_(NAN)
    module.counter.fill_(2**53 + 1)
    module[0].weight.data[:3] = NAN
    module[0].bias.data.fill_(-0.0)
    h = loaded(g, tmp_path)

    assert all_bits(live(h, "various")) == all_bits(module)
    assert live(h, "various").none is None


def test_another_memory_format_changes_nothing(tmp_path: Path) -> None:
    """Strides are no part of a weight: a transposed or a partial one is stored as it reads."""
    g = built(Dense(3))
    linear = live(g, "dense")
    linear.weight.data = torch.randn(6, 3).t()
    linear.bias.data = torch.randn(10)[4:7]
    h = loaded(g, tmp_path)

    assert all_bits(live(h, "dense")) == all_bits(linear)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_graph_of_another_type_comes_back(tmp_path: Path, dtype: torch.dtype) -> None:
    """`g.to(dtype=…)` holds after a load, for buffers that are built again too."""
    g = built(Various(), Dense(3)).to(dtype=dtype)
    h = loaded(g, tmp_path)

    assert all_bits(live(h, "various")) == all_bits(live(g, "various"))
    assert all_bits(live(h, "dense")) == all_bits(live(g, "dense"))


def test_flags_and_modes_come_back(tmp_path: Path) -> None:
    """What asks for no gradient asks for none; dropout that was left on stays on."""
    g = built(Various(), Dense(3))
    live(g, "dense").weight.requires_grad_(False)
    live(g, "various")[1].train()
    h = loaded(g, tmp_path)

    assert [one.requires_grad for one in live(h, "dense").parameters()] == [False, True]
    assert [part.training for part in live(h, "various").modules()] == [False, False, True]


def test_a_loaded_graph_is_in_eval(tmp_path: Path) -> None:
    """Also one that was saved in the middle of training."""
    g = built(Various(), Dense(3)).train()
    h = loaded(g, tmp_path)

    assert (g.training, h.training) == (True, False)
    assert not any(part.training for part in live(h, "various").modules())


@pytest.mark.parametrize("built_tied", [True, False])
@pytest.mark.parametrize("saved_tied", [True, False])
def test_ties_in_a_module_are_as_saved(tmp_path: Path, built_tied: bool, saved_tied: bool) -> None:
    """One weight in two places is one again, and two are two, whatever the class builds."""
    g = built(Tied(tie=built_tied))
    module = live(g, "tied")
    module[2].weight = module[0].weight if saved_tied else nn.Parameter(torch.randn(6, 6))
    h = live(loaded(g, tmp_path), "tied")

    assert (h[0].weight is h[2].weight) == saved_tied
    assert h[0].weight is not h[1].weight
    assert all_bits(h) == all_bits(module)


def test_ties_across_nodes_stay(tmp_path: Path) -> None:
    """A weight that two nodes share is stored once, and one parameter afterwards."""
    g = built(Dense(6), Dense(6), Dense(6))
    live(g, "dense_3").weight = live(g, "dense").weight
    g.freeze()
    h = loaded(g, tmp_path)
    names = [name for name, _ in h.named_parameters()]

    assert live(h, "dense_3").weight is live(h, "dense").weight
    assert h.filter("dense_3")._module.weight is h.filter("dense")._module.weight
    assert names == [name for name, _ in g.named_parameters()]
    assert len(members(tmp_path / "g.soma")["n/0002.safetensors"]) < 150


@pytest.mark.parametrize("saved_shared", [True, False])
def test_memory_that_is_shared_stays_shared(tmp_path: Path, saved_shared: bool) -> None:
    """Two parameters over one memory are two parameters over one memory."""
    g = built(Dense(6), Dense(6))
    if saved_shared:
        live(g, "dense_2").weight.data = live(g, "dense").weight.data
    h = loaded(g, tmp_path)
    one, other = live(h, "dense").weight, live(h, "dense_2").weight

    assert one is not other
    assert (one.data_ptr() == other.data_ptr()) == saved_shared
    assert all_bits(live(h, "dense_2")) == all_bits(live(g, "dense_2"))


def test_a_frozen_graph_answers_from_its_copy(tmp_path: Path) -> None:
    """Weights that were changed after `freeze` come back, and so does the frozen copy."""
    g = built(Dense(3)).freeze()
    state = g.get_node_state("dense")
    live(g, "dense").weight.data += 1
    h = loaded(g, tmp_path)

    assert torch.equal(h.forward(X), g.forward(X))
    assert dict(h.get_node_state("dense")) == dict(state)
    assert all_bits(live(h, "dense")) == all_bits(live(g, "dense"))
    assert all_bits(h.filter("dense")._module) == all_bits(g.filter("dense")._module)


def test_what_was_written_to_the_frozen_copy_is_not_lost(tmp_path: Path) -> None:
    """`train()` carries it over to the live weights, after a load too."""
    g = built(Dense(3)).freeze()
    with torch.no_grad():
        g.filter("dense")._module.bias.fill_(5.0)
    h = loaded(g, tmp_path)

    assert torch.equal(h.forward(X), g.forward(X))
    assert live(h.train(), "dense").bias.tolist() == [5.0] * 3


def test_a_copy_that_is_out_of_date_is_left_out(tmp_path: Path) -> None:
    """A graph that was trained after `freeze` answers from its live weights."""
    g = built(Dense(3)).freeze().train()
    with torch.no_grad():
        live(g, "dense").weight.add_(1.0)
    h = loaded(g, tmp_path)

    assert h.filter("dense")._twin is None
    assert torch.equal(h.forward(X), g.eval().forward(X))


def test_weights_that_plain_filters_hold_come_back(tmp_path: Path) -> None:
    """A projection that the constructor draws is the saved one, not a new one."""
    g = Graph.somatize(Holding() >> Holding(), cache=None)
    h = loaded(g, tmp_path)

    assert torch.equal(h.forward(X), g.forward(X))
    assert torch.equal(h.filter("holding_2").table, g.filter("holding_2").table)


def test_an_unbuilt_module_comes_back_unbuilt(tmp_path: Path) -> None:
    """A graph may be saved before its modules are built, with weights that wait for them."""
    g = built(Dense(3)).freeze()
    waiting = Graph.somatize(Dense(3) >> Dense(2), cache=None)
    waiting.set_node_state("dense", g.get_node_state("dense"))
    h = loaded(waiting, tmp_path)
    assert live(h, "dense") is None
    h.materialize(X)

    assert all_bits(live(h, "dense")) == all_bits(live(g, "dense"))


def test_a_loaded_graph_reads_the_same_cache(tmp_path: Path) -> None:
    """Keys do not change by a load: what was computed before is a hit."""
    g = Graph.somatize(Standardize() >> Counting(width=3), cache=tmp_path / "cache")
    g.fit(X, Y, epochs=1, progress=False)
    answer = g.forward(X)
    h = loaded(g, tmp_path, cache=tmp_path / "cache")
    before = Counting.calls

    assert torch.equal(h.forward(X), answer)
    assert Counting.calls == before


class Counting(DifferentiableFilter):
    """Counts its forwards."""

    calls = 0
    _cache_version = "1"

    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], self.width)

    def forward(self, x, state=None):
        Counting.calls += 1
        return self._module(x), {}


def test_modules_find_their_shapes_again(tmp_path: Path) -> None:
    """A fan-in is built for the shapes that reached it, without data."""
    torch.manual_seed(0)
    body = Standardize() >> (Dense(4, nn.ReLU) | Gated(5)) >> Concatenate(2)
    g = Graph.somatize(body, cache=None).fit(X, Y[:, :2], epochs=2, progress=False)
    h = loaded(g, tmp_path, trust_modules="torch.nn.")

    assert torch.equal(h.forward(X), g.forward(X))


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    """Building modules again leaves the generators where they were."""
    g = built(Dense(3))
    g.save(tmp_path / "g.soma")
    torch.manual_seed(1)
    Graph.load(tmp_path / "g.soma")
    after = torch.rand(3)
    torch.manual_seed(1)

    assert torch.equal(torch.rand(3), after)


def test_other_tools_can_read_the_weights(tmp_path: Path) -> None:
    """A member is a safetensors file with the names of the module."""
    built(Dense(3)).save(tmp_path / "g.soma")
    file = tmp_path / "weights"
    file.write_bytes(members(tmp_path / "g.soma")["n/0000.safetensors"])
    with safe_open(file, "pt") as opened:
        assert sorted(opened.keys()) == ["bias", "weight"]


def test_extra_state_of_a_module_comes_back(tmp_path: Path) -> None:
    """What `get_extra_state` gives is stored if it is plain data."""
    g = built(Remembering(n=7))
    live(g, "remembering").said = {"a": [1, 2.5]}

    assert live(loaded(g, tmp_path), "remembering").said == {"a": [1, 2.5]}


class Extra(nn.Linear):
    """A layer that has more to keep."""

    said: Any = None

    def get_extra_state(self):
        return self.said

    def set_extra_state(self, state):
        self.said = state


class Remembering(DifferentiableFilter):
    """Builds it."""

    def build_module(self, input_shape):
        return Extra(6, self.n)


LOSSES: dict[str, tuple[Any, str]] = {
    "no member": (
        lambda found: found.pop("n/0000.safetensors"),
        r"'n/0000\.safetensors' is missing",
    ),
    "no bytes": (lambda found: found.update({"n/0000.safetensors": b""}), "cannot be loaded"),
    "another": (
        lambda found: found.update({"n/0000.safetensors": found["n/0001.safetensors"]}),
        "shape",
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_lost_weights_are_never_new_ones(tmp_path: Path, name: str) -> None:
    """A node whose weights are missing or wrong is an error that says so."""
    change, reason = LOSSES[name]
    built(Dense(3), Dense(3)).save(tmp_path / "g.soma")
    with pytest.raises(CheckpointError, match=reason):
        Graph.load(rewritten(tmp_path / "g.soma", change))


def drop(manifest: Any) -> None:
    """Take the place of one weight out of a manifest."""
    del manifest["nodes"][0]["weights"][""]["weights"]["bias"]


def add(manifest: Any) -> None:
    """Put one more in."""
    weights = manifest["nodes"][0]["weights"][""]["weights"]
    weights["more"] = weights["bias"]


@pytest.mark.parametrize(
    ("change", "reason"), [(drop, "`dense` lacks `bias`"), (add, "`dense` has `more`")]
)
def test_too_few_and_too_many_weights_are_named(tmp_path: Path, change: Any, reason: str) -> None:
    """Strictly it is an error; otherwise a warning, and the rest is loaded."""
    g = built(Dense(3))
    g.save(tmp_path / "g.soma")
    path = edited(tmp_path / "g.soma", change)
    with pytest.raises(CheckpointError, match=reason):
        Graph.load(path)
    with pytest.warns(CheckpointWarning, match=reason):
        h = Graph.load(path, strict=False)

    assert torch.equal(live(h, "dense").weight, live(g, "dense").weight)


def test_arguments_and_weights_have_to_match(tmp_path: Path) -> None:
    """A class that builds another module than the saved one is refused."""
    g = built(Dense(3))
    g.save(tmp_path / "g.soma")
    other = type("Dense", (Dense,), {"build_module": lambda self, shape: nn.Linear(6, 4)})
    with pytest.raises(CheckpointError, match=r"`weight` of `dense` has shape \(3, 6\)"):
        Graph.load(tmp_path / "g.soma", classes=[other])


def test_weights_without_values_are_refused(tmp_path: Path) -> None:
    """A lazy module that never ran has nothing to save."""
    lazy = type("Lazy", (DifferentiableFilter,), {"build_module": lambda self, s: nn.LazyLinear(3)})
    filter = lazy()
    filter.materialize((6,))
    with pytest.raises(CheckpointError, match="has no values yet"):
        Graph.somatize(filter).save(tmp_path / "g.soma")
    g = built(lazy())
    h = loaded(g, tmp_path)

    assert torch.equal(h.forward(X), g.forward(X))


def test_a_sparse_weight_is_refused(tmp_path: Path) -> None:
    """What no file can hold is named before anything is written."""
    g = built(Various())
    live(g, "various").odd = torch.eye(3).to_sparse()
    with pytest.raises(CheckpointError, match="`odd` of `various`"):
        g.save(tmp_path / "g.soma")

    assert not (tmp_path / "g.soma").exists()
