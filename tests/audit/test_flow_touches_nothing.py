"""A traced training is the training it would have been."""

import copy
import gc
import pickle  # noqa: TID251 - a user may
from collections.abc import Callable
from threading import Thread
from weakref import ref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from soma import Graph
from tests.audit.flows import Always, Around, Bare, Join, arrows, edges, in_training, traced


def net() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(8, 2)
    )


class Sequences(nn.Module):
    """Attention, recurrence and a checkpoint, all with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.code = nn.TransformerEncoderLayer(6, 2, dim_feedforward=8, batch_first=True)
        self.lstm = nn.LSTM(6, 4, num_layers=2, dropout=0.3, batch_first=True)
        self.head = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))

    def forward(self, x):
        states, _ = self.lstm(self.code(x.unsqueeze(1).expand(-1, 3, -1)))
        return checkpoint(self.head, states.mean(1), use_reentrant=False)


def trained(make: Callable[[], nn.Module], *, traced: bool) -> list[torch.Tensor]:
    """Take twenty steps; return all state, and what the generator gives next."""
    torch.manual_seed(0)
    module = make()
    graph = in_training(Bare(module), torch.randn(4, 6))
    optimizer = torch.optim.Adam(module.parameters())
    torch.manual_seed(1)
    watchers = [Always(graph.topology)] if traced else []
    graph._runner.listeners.watchers.extend(watchers)
    for _ in range(20):
        output, _ = graph.forward(torch.randn(4, 6))
        optimizer.zero_grad()
        output.square().sum().backward()
        optimizer.step()
    return [*module.state_dict().values(), torch.rand(3)]


@pytest.mark.parametrize("make", [net, Sequences])
def test_weights_are_bit_equal(make: Callable[[], nn.Module]) -> None:
    """Twenty traced steps with dropout end in the same bits, and leave the same randomness."""
    assert all(map(torch.equal, trained(make, traced=False), trained(make, traced=True)))


def test_no_hook_stays() -> None:
    """After a traced step, also one that fails, no module has a hook more."""

    def forward(m, x):
        if x.shape[0] == 3:
            raise KeyError("three")
        return m(x)

    module = net()
    graph = in_training(Around(module, forward), torch.randn(4, 6))
    traced(graph, torch.randn(4, 6))
    with pytest.raises(KeyError, match="three"):
        traced(graph, torch.randn(3, 6))

    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    assert not any(part._forward_hooks_with_kwargs for part in module.modules())
    assert not any(part._forward_hooks_always_called for part in module.modules())


def test_no_tensor_stays() -> None:
    """When a traced step is over, nothing of it is alive."""
    kept = []

    def forward(m, x):
        y = m(x)
        kept.append(ref(y))
        return y.sum(1)

    x = torch.randn(4, 6)
    graph = in_training(Around(nn.Linear(6, 2), forward), x)
    tracer = Always(graph.topology)
    with graph._runner.listeners.listening(watcher=tracer):
        graph.forward(x)
        gc.collect()

        assert kept[-1]() is None


def test_errors_are_the_same() -> None:
    """A traced step raises what it raises untraced, with the same notes."""
    graph = in_training(Bare(net()), torch.randn(4, 6))
    raised = []
    for run in (graph.forward, lambda x: traced(graph, x)):
        with pytest.raises(RuntimeError) as error:
            run(torch.randn(4, 5))
        raised.append((type(error.value), str(error.value), error.value.__notes__))

    assert raised[0] == raised[1]


def test_a_forward_that_recovers() -> None:
    """A submodule that failed and was replaced by another is no part of the flow."""

    def forward(m, x):
        try:
            return m["bad"](x)
        except RuntimeError:
            return m["good"](x)

    module = nn.ModuleDict({"bad": nn.Linear(5, 2), "good": nn.Linear(6, 2)})
    x = torch.randn(4, 6)

    found = edges(traced(in_training(Around(module, forward), x), x))
    assert found >= arrows("input > good > output")
    assert not any("bad" in (source, target) and target != "bad" for source, target, _ in found)


def test_copies_are_silent() -> None:
    """A module may be copied and pickled while it is traced; a copy tells nobody."""

    def forward(m, x):
        twin = copy.deepcopy(m)
        thawed = pickle.loads(pickle.dumps(m))
        return m["a"](x) + twin["a"](x) + thawed["a"](x)

    module = nn.ModuleDict({"a": nn.Linear(6, 2)})
    x = torch.randn(4, 6)
    flow = traced(in_training(Around(module, forward), x), x)

    assert flow.note is None
    assert edges(flow) >= arrows("input > a > add_1 > add_2 > output, input > linear_1 > add_1")


def test_threads() -> None:
    """Two graphs traced in two threads have each its own flow."""
    flows = {}

    def run(name: str, module: nn.Module) -> None:
        x = torch.randn(4, 6)
        graph = in_training(Bare(module), x)
        flows[name] = traced(graph, *[x] * 10)

    threads = [Thread(target=run, args=one) for one in (("join", Join()), ("net", net()))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert edges(flows["net"]) == arrows("input > 0 > 1 > 2 > 3 > 4 > output")
    assert ("cat_1", "output.code", None) in edges(flows["join"])


def test_one_module_in_two_threads() -> None:
    """A module that another thread calls meanwhile is traced in one of them only."""
    module = net().eval()

    def forward(m, x):
        other = Thread(target=lambda: m(torch.randn(4, 6)))
        other.start()
        other.join()
        return m(x)

    x = torch.randn(4, 6)
    flow = traced(in_training(Around(module, forward), x), x)

    assert edges(flow) == arrows("input > 0 > 1 > 2 > 3 > 4 > output")


def test_built_in_the_middle() -> None:
    """A module that its filter builds in `forward` is traced from the next step on."""

    class Late(Around):
        def forward(self, x, state=None):
            self.materialize(tuple(x.shape[1:]))
            return self._module(x), {}

    graph = Graph.somatize(Late(net(), None))
    graph.train()
    x = torch.randn(4, 6)
    flow = traced(graph, x, x)

    assert (flow.calls, flow.note) == (1, None)


def test_lazy_layers() -> None:
    """A lazy layer is traced as what it becomes."""
    module = nn.Sequential(nn.Linear(6, 4), nn.LazyLinear(2))
    flow = traced(in_training(Bare(module), torch.randn(4, 6)), torch.randn(4, 6))

    assert [one.label for one in flow.nodes] == ["input", "Linear", "Linear", "output"]


def test_what_cannot_be_looked_at() -> None:
    """A value that fails when it is looked at leaves a note, and the forward goes on."""

    class Sealed(dict):
        def values(self):
            raise RuntimeError("sealed")

    class Opens(nn.Linear):
        def forward(self, box):
            return super().forward(box["x"])

    x = torch.randn(4, 6)
    around = Around(nn.ModuleDict({"a": Opens(6, 2)}), lambda m, x: m["a"](Sealed(x=x)))
    flow = traced(in_training(around, x), x)

    assert (flow.calls, flow.note) == (0, "tracing failed: RuntimeError: sealed")
