"""`g.module()` under torch's own tools: compile, export, functional calls, data parallel, ONNX."""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_flatten

from soma import DifferentiableFilter, Graph
from tests.processes import started
from tests.training import data_parallel
from tests.training.filters import Concatenate, Dense, Gated, Standardize, data

ROOT = Path(__file__).parents[2]
X, _ = data()
BATCH = ({0: torch.export.Dim("rows")},)


class Branches(DifferentiableFilter):
    """What it does depends on the numbers that come."""

    def build_module(self, input_shape: Any) -> nn.Module:
        return nn.Linear(input_shape[-1], 2)

    def forward(self, x: Any, state: Any = None) -> Any:
        output = self._module(x)
        return (output if output.sum() > 0 else -output), {}


@pytest.fixture
def module() -> nn.Module:
    """Return the module of a graph with dropout, a fan-in, aux and two leaves."""
    torch.manual_seed(0)
    inner = Standardize() >> (Gated(3) | Dense(2, lambda: nn.Dropout(0.5)))  # type: ignore[arg-type]
    g = Graph.somatize(inner >> Concatenate(4) >> (Dense(2) | Dense(3)))
    return g.fit(X, epochs=0).module()


def seeded(module: Any, x: torch.Tensor) -> tuple[list[torch.Tensor], Any]:
    """Return all tensors of an answer and their tree."""
    torch.manual_seed(1)
    leaves, tree = tree_flatten(module(x))
    return leaves, tree


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("training", [True, False])
def test_it_compiles_without_a_break(module: nn.Module, backend: str, training: bool) -> None:
    """A compiled module is one graph of torch, and gives the same tree and gradients."""
    compiled = torch.compile(module.train(training), backend=backend, fullgraph=True)
    expected, tree = seeded(module, X)
    answer, compiled_tree = seeded(compiled, X)
    sum(one.sum() for one in answer).backward()  # type: ignore[union-attr]

    assert compiled_tree == tree
    torch.testing.assert_close(answer, expected)
    assert all(one.grad is not None for one in module.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("strict", [True, False])
def test_it_is_exported(module: nn.Module, strict: bool) -> None:
    """An exported program takes any number of rows and keeps names and tree."""
    program = torch.export.export(module.eval(), (X,), strict=strict, dynamic_shapes=BATCH)
    expected, tree = seeded(module, X[:5])
    answer, exported_tree = seeded(program.module(), X[:5])

    assert exported_tree == tree
    torch.testing.assert_close(answer, expected)
    assert list(program.state_dict) == list(module.state_dict())


def test_a_branch_on_data_is_told_by_its_node() -> None:
    """What cannot be exported says which node it is in."""
    module = Graph.somatize(Dense(3) >> Branches()).materialize(X).module()
    with pytest.raises(Exception, match="data-dependent") as caught:
        torch.export.export(module, (X,))

    assert "in node `branches` of a graph's module" in caught.value.__notes__


def test_it_is_called_with_other_weights(module: nn.Module) -> None:
    """`functional_call` replaces the weights, in filters with a `forward` of their own too."""
    zeros = {name: torch.zeros_like(one) for name, one in module.named_parameters()}
    before = seeded(module, X)[0]
    output, aux = torch.func.functional_call(module, zeros, (X,))

    assert output["dense_2"].abs().sum() == 0
    assert (aux["gated"]["gate"] == 0.5).all()
    torch.testing.assert_close(seeded(module, X)[0], before)


def test_gradients_per_sample(module: nn.Module) -> None:
    """`vmap` over `grad` of a functional call gives one gradient a row."""
    weights = dict(module.eval().named_parameters())

    def loss(weights: Any, row: torch.Tensor) -> torch.Tensor:
        output, _ = torch.func.functional_call(module, weights, (row[None],))
        return output["dense_2"].square().sum()  # type: ignore[no-any-return]

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, X)
    whole = torch.func.grad(lambda one: module_loss(module, one))(weights)
    torch.testing.assert_close(each["gated.gate.weight"].sum(0), whole["gated.gate.weight"])


def module_loss(module: nn.Module, weights: Any) -> torch.Tensor:
    """Return the loss of all rows."""
    output, _ = torch.func.functional_call(module, weights, (X,))
    return output["dense_2"].square().sum()  # type: ignore[no-any-return]


@pytest.mark.process
def test_processes_train_it_side_by_side(tmp_path: Path) -> None:
    """Two processes with half of the rows each end where one with all of them does."""
    script = [sys.executable, "-m", "tests.training.data_parallel"]
    ranks = [[*script, str(rank), str(tmp_path / "meeting")] for rank in range(2)]
    with started(ranks, cwd=ROOT) as running:
        told = [json.loads(one.communicate(timeout=100)[0]) for one in running]
    alone = data_parallel.graph()
    data_parallel.train(alone.module(), data_parallel.X, data_parallel.Y)

    assert told[0] == told[1]
    expected = alone.eval().forward(data_parallel.X)
    torch.testing.assert_close(torch.tensor(told[0]), expected)
    assert not expected.equal(data_parallel.graph().forward(data_parallel.X))


@pytest.mark.slow
def test_it_is_exported_to_onnx(module: nn.Module) -> None:
    """A reference reader of ONNX gives the same numbers for another number of rows."""
    pytest.importorskip("onnxscript", reason="ONNX export needs onnx and onnxscript")
    from onnx.reference import ReferenceEvaluator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's exporter uses what torch calls deprecated
        program = torch.onnx.export(module.eval(), (X,), dynamic_shapes=BATCH, verbose=False)
    assert program is not None
    reader = ReferenceEvaluator(program.model_proto)
    answer = reader.run(None, {reader.input_names[0]: X[:5].numpy()})
    expected = [one.detach().numpy() for one in seeded(module, X[:5])[0]]

    for one, other in zip(answer, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
