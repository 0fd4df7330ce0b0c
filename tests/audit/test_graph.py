"""The audit of a graph: nodes, fan-ins, shared modules, what stays as it was."""

import pickle  # noqa: TID251
from copy import deepcopy

import pytest
import torch
from torch import nn

import soma
from soma import ChannelConfig, Filter, Graph
from soma.errors import GradientHealthError
from tests.audit.loops import X, values


class Dense(soma.DifferentiableFilter):
    """A linear layer."""

    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], self.width)


class Modules(soma.DifferentiableFilter):
    """A module that is never called itself: its filter calls what is in it."""

    def build_module(self, input_shape):
        branches = {"audio": nn.Linear(4, 4), "text": nn.Linear(4, 4)}
        return nn.ModuleDict({"branches": nn.ModuleDict(branches), "head": nn.Linear(8, 2)})

    def forward(self, x, state=None):
        module = self._module
        both = [module["branches"][name](x) for name in ("audio", "text")]
        return module["head"](torch.cat(both, 1)), {}


class Double(Filter):
    """A plain step."""

    def forward(self, x, state):
        return x * 2


def trained(g: Graph, steps: int = 3, **audited: object):
    """Train a graph under audit."""
    g.materialize(X)
    g.train()
    g.make_optimizer(torch.optim.SGD, lr=0.05)
    with g.gradient_audit(**audited) as audit:
        for _ in range(steps):
            with g.context() as ctx:
                g.zero_grad()
                output, _ = g.forward(X)
                g.backward(ctx, output.square().mean())
            g.step(ctx)
    return audit


def test_a_chain() -> None:
    """Each node with a module is a unit; loss and the network's own numbers are there."""
    audit = trained(Graph.somatize(Double() >> Dense(width=3) >> Dense(width=2), cache=None))

    measured = audit.measurements
    assert list(measured.units) == ["dense", "dense_2"]
    assert [one.loss for one in measured.steps] == sorted(
        (one.loss for one in measured.steps), reverse=True
    )
    assert measured.steps[0].output_norm == values(audit, "dense_2", "act_norm")[0]
    assert measured.steps[0].output_grad_norm == values(audit, "dense_2", "out_grad_norm")[0]
    assert (measured.units["dense"].feeds_output, measured.units["dense_2"].feeds_output) == (
        False,
        True,
    )


def test_a_module_that_is_not_called() -> None:
    """The node has what its filter returns; containers inside are no units."""
    g = Graph(cache=None)
    g.node("encoder", Modules())
    audit = trained(g, inside={"encoder": True})

    assert list(audit.measurements.units) == [
        "encoder",
        "encoder/branches.audio",
        "encoder/branches.text",
        "encoder/head",
    ]
    assert values(audit, "encoder", "out_grad_norm") == values(
        audit, "encoder/head", "out_grad_norm"
    )


def test_weights_do_not_notice() -> None:
    """Training under audit is bit for bit the training without."""
    ends = []
    for watched in (False, True):
        torch.manual_seed(0)
        g = Graph(cache=None)
        g.node("encoder", Modules())
        if watched:
            trained(g, inside=True, channels=True)
        else:
            g.materialize(X)
            g.train()
            optimizer = g.make_optimizer(torch.optim.SGD, lr=0.05)
            for _ in range(3):
                optimizer.zero_grad()
                g.forward(X)[0].square().mean().backward()
                optimizer.step()
        ends.append([one.detach() for one in g.parameters()])
    assert all(map(torch.equal, *ends))


def test_groups_are_compared() -> None:
    """Two groups of channels that say the same have a similarity of one, others much less."""

    class Copies(soma.DifferentiableFilter):
        def build_module(self, input_shape):
            return nn.Linear(4, 4)

        def forward(self, x, state=None):
            y = self._module(x)
            return torch.cat([y, 3 * y.flip(1), torch.randn(len(x), 4)], 1), {}

    g = Graph(cache=None)
    g.node("mix", Copies())
    groups = {"mix": {"a": range(4), "b": range(4, 8), "noise": range(8, 12)}}
    audit = trained(g, steps=10, channels=ChannelConfig(groups=groups))

    found = audit.measurements.similarity["mix"]
    assert found["a", "b"].values[-1] == pytest.approx(1.0, abs=1e-6)
    assert abs(found["a", "noise"].values[-1]) < 0.2


def test_evaluation_inside() -> None:
    """Inference inside an audit is not measured and not changed."""
    g = Graph.somatize(Dense(width=3) >> Dense(width=2), cache=None)
    g.materialize(X)
    g.train()
    g.make_optimizer(torch.optim.SGD, lr=0.05)
    with g.gradient_audit(inside=True) as audit:
        for _ in range(2):
            with g.context() as ctx:
                g.zero_grad()
                g.backward(ctx, g.forward(X)[0].square().mean())
            g.step(ctx)
            with g.evaluating():
                assert g.forward(X * 1e4).shape == (16, 2)
    assert values(audit, "dense", "calls") == [1.0, 1.0]


def test_built_inside_the_audit() -> None:
    """A module that is built inside the audit is measured from its first step."""
    g = Graph.somatize(Dense(width=2), cache=None)
    with g.gradient_audit() as audit:
        g.fit(X, torch.randn(16, 2), epochs=2, batch_size=8)
    assert len(values(audit, "dense", "out_grad_norm")) == 4


def test_a_scope_of_the_filters_own() -> None:
    """A filter may say what is worth watching in it."""

    class Choosy(Modules):
        _audit_scope = ("head",)

    g = Graph(cache=None)
    g.node("encoder", Choosy())
    audit = trained(g, inside=True)

    assert list(audit.measurements.units) == ["encoder", "encoder/head"]


def test_a_node_that_is_not_there() -> None:
    """A scope for an unknown node is an error that names the known ones."""
    g = Graph.somatize(Dense(width=2), cache=None)
    with pytest.raises(ValueError, match="'dense'"), g.gradient_audit(inside={"dens": True}):
        pass


def test_records_and_series() -> None:
    """Numbers can be had as rows, and as series of one unit."""
    audit = trained(Graph.somatize(Dense(width=2), cache=None))

    rows = audit.records()
    assert [(row["step"], row["filter_id"]) for row in rows] == [(at, "dense") for at in range(3)]
    assert audit.timeseries("dense")["act_norm"].values == [row["act_norm"] for row in rows]
    with pytest.raises(KeyError, match="dense"):
        audit.timeseries("nobody")


def test_a_callback_ends_the_loop() -> None:
    """What a callback raises comes out of the step that shows the finding."""

    class Enough(Exception):
        pass

    def stop(finding):
        raise Enough(finding.name)

    g = Graph.somatize(Dense(width=2), cache=None)
    g.materialize(X)
    g.train()
    g.make_optimizer(torch.optim.SGD, lr=0.05)
    steps = 0
    with pytest.raises(Enough, match="NAN"), g.gradient_audit() as audit:  # noqa: PT012
        audit.on_finding(stop)
        while True:
            with g.context() as ctx:
                g.zero_grad()
                output, _ = g.forward(X)
                g.backward(ctx, output.square().mean() * (torch.nan if steps == 3 else 1.0))
            g.step(ctx)
            steps += 1
    assert steps == 3


def test_asserting_health() -> None:
    """An unhealthy audit raises with its report, a healthy one does not."""

    class Cut(soma.DifferentiableFilter):
        def build_module(self, input_shape):
            return nn.ModuleDict({"one": nn.Linear(4, 2), "two": nn.Linear(4, 2)})

        def forward(self, x, state=None):
            return self._module["one"](x) + self._module["two"](x).detach(), {}

    g = Graph(cache=None)
    g.node("cut", Cut())
    with pytest.raises(GradientHealthError, match="NO_GRAD"):
        trained(g, steps=6, inside=True).assert_healthy()


@pytest.mark.parametrize("copied", [deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copy_of_an_audited_graph(copied) -> None:
    """A graph is copied inside an audit, as to keep the best; nobody watches the copy."""
    g = Graph.somatize(Dense(width=3) >> Dense(width=2), cache=None).materialize(X)
    g.train()
    g.make_optimizer(torch.optim.SGD, lr=0.05)
    with g.gradient_audit(inside=True) as audit:
        copy = copied(g)
        for one in (g, copy, copy):
            with one.context() as ctx:
                one.zero_grad()
                one.backward(ctx, one.forward(X)[0].square().mean())
            one.step(ctx)

    assert audit.report().n_steps == 1
