"""One clear error for each thing that goes wrong at a user's desk.

Each says which node, what came, what was wanted and what to do.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from soma import DifferentiableFilter, Filter, Graph, errors

X = torch.linspace(-1, 1, 24).reshape(8, 3)
Y = torch.ones(8, 2)


class Dense(DifferentiableFilter):
    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], 2)


class Mean(Filter):
    def fit(self, x, y=None):
        return x.mean(0)

    def forward(self, x, state):
        return x - state


class Silent(Filter):
    def forward(self, x, state):
        pass


class SilentModule(Dense):
    def forward(self, x, state=None):
        self._module(x)


class Halving(Dense):
    def forward(self, x, state=None):
        return self._module(x[: len(x) // 2]), {}


def cycle() -> None:
    g = Graph()
    g.node("a", Mean())
    g.node("b", Mean())
    g.connect("a", "b").connect("b", "a").compile()


def unknown_node() -> None:
    g = Graph()
    g.node("encoder", Mean())
    g.node("head", Mean())
    g.connect("encodr", "head").compile()


def one_filter_twice() -> None:
    shared = Mean()
    g = Graph()
    g.node("a", shared)
    g.node("b", shared)
    g.connect("a", "b").compile()


def one_filter_twice_in_an_expression() -> None:
    shared = Mean()
    Graph.somatize(shared >> shared)


def an_edge_twice() -> None:
    g = Graph()
    g.node("a", Mean())
    g.node("b", Mean())
    g.connect("a", "b").connect("a", "b").compile()


def no_nodes() -> None:
    Graph().forward(X)


def forward_before_fit() -> None:
    Graph.somatize(Mean()).forward(X)


def forward_before_materialize() -> None:
    Graph.somatize(Dense()).forward(X)


def training_before_materialize() -> None:
    Graph.somatize(Dense()).train().forward(X)


def trained() -> Graph:
    g = Graph.somatize(Dense())
    g.materialize(X)
    return g.train()


def step_without_an_optimizer() -> None:
    trained().step()


def backward_without_gradients() -> None:
    g = Graph.somatize(Dense())
    g.materialize(X)
    g.backward(None, g.forward(X).sum())


def backward_with_nothing_trainable() -> None:
    g = trained()
    g.filter("dense")._module.requires_grad_(False)
    output, _ = g.forward(X)
    g.backward(None, output.sum())


def none_in_training() -> None:
    g = Graph.somatize(Silent())
    g.train()
    g.forward(X)


def none_of_a_module_in_training() -> None:
    g = Graph.somatize(SilentModule())
    g.filter("silent_module").materialize((3,))
    g.train()
    g.forward(X)


def no_filter_on_the_right() -> None:
    Mean() >> nn.Linear(3, 2)


def no_filter_on_the_left() -> None:
    len | Mean()


def a_class_in_place_of_an_instance() -> None:
    Mean() >> Mean


def lengths_differ() -> None:
    Graph.somatize(Mean()).fit(X, Y[:5])


def lengths_differ_with_modules() -> None:
    Graph.somatize(Dense()).fit(X, Y[:5], epochs=1)


def no_rows() -> None:
    Graph.somatize(Mean()).fit(X[:0], Y[:0])


def no_rows_with_modules() -> None:
    Graph.somatize(Dense()).fit(np.zeros((0, 3)), np.zeros((0, 2)), epochs=1)


def rows_change_inside() -> None:
    Graph.somatize(Halving()).fit(X, Y, epochs=1, progress=False)


def a_forgotten_train() -> None:
    g = Graph.somatize(Dense())
    g.materialize(X)
    with g.context():
        g.forward(X)


def an_optimizer_that_is_none() -> None:
    trained().set_optimizer("adam")


def lbfgs_without_a_closure() -> None:
    g = trained()
    g.set_optimizer(torch.optim.LBFGS(g.parameters()))
    g.step()


TABLE: list[tuple[Callable[[], None], type[Exception], str]] = [
    (cycle, errors.CompileError, r"`a` → `b` → `a`|a → b → a"),
    (unknown_node, errors.CompileError, r"`encodr`[\s\S]*[Dd]id you mean `encoder`"),
    (one_filter_twice, errors.CompileError, r"`a`[\s\S]*`b`"),
    (one_filter_twice_in_an_expression, errors.CompileError, r"`mean`[\s\S]*`mean_2`"),
    (an_edge_twice, errors.CompileError, r"`a`[\s\S]*`b`"),
    (no_nodes, errors.CompileError, "no nodes"),
    (forward_before_fit, errors.NotFitted, r"`mean` learns .* Call `g\.fit\(x, y\)`"),
    (forward_before_materialize, errors.NotMaterialized, r"`dense` .*`g\.materialize\(sample\)`"),
    (training_before_materialize, errors.NotMaterialized, r"`dense` .*`g\.materialize\(sample\)`"),
    (step_without_an_optimizer, errors.NoOptimizer, r"no optimizer.*`g\.make_optimizer"),
    (backward_without_gradients, errors.ModeError, r"no gradient.*`g\.train\(\)`"),
    (backward_with_nothing_trainable, errors.ModeError, "no trainable node"),
    (none_in_training, errors.InvalidOutput, "`Silent.forward` returned None"),
    (none_of_a_module_in_training, errors.InvalidOutput, "`SilentModule.forward` returned None"),
    (no_filter_on_the_right, errors.NotAFilter, "a `Linear` stands on the right of `>>`"),
    (no_filter_on_the_left, errors.NotAFilter, "stands on the left of `|`".replace("|", r"\|")),
    (a_class_in_place_of_an_instance, errors.NotAFilter, r"the class `Mean` .*`Mean\(\.\.\.\)`"),
    (lengths_differ, errors.InvalidInput, "x has 8 rows and y has 5"),
    (lengths_differ_with_modules, errors.InvalidInput, "x has 8 rows and y has 5"),
    (no_rows, errors.InvalidInput, "no rows"),
    (no_rows_with_modules, errors.InvalidInput, "no rows"),
    (rows_change_inside, errors.InvalidOutput, r"`halving`.*4 rows.*8"),
    (a_forgotten_train, errors.ModeError, r"Call `g\.train\(\)`"),
    (an_optimizer_that_is_none, TypeError, "'adam'"),
    (lbfgs_without_a_closure, errors.NoOptimizer, r"closure"),
]


@pytest.mark.parametrize(("act", "kind", "says"), TABLE, ids=[act.__name__ for act, _, _ in TABLE])
def test_bad_input_gives_one_clear_error(
    act: Callable[[], None], kind: type[Exception], says: str
) -> None:
    """The error is of our own tree and says what to do."""
    with pytest.raises(kind, match=says):
        act()


def test_a_wrong_shape_keeps_the_error_of_torch() -> None:
    """The note names node, class, phase and shape; the traceback is the user's."""
    g = trained()
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes") as caught:
        g.forward(torch.zeros(8, 5))
    assert caught.value.__notes__ == [
        "in node `dense` (Dense, built for samples of shape (3,)), during train; "
        "its input: Tensor of float32, shape (8, 5)"
    ]


def test_a_sample_of_another_shape_is_told_at_materialize() -> None:
    """A module is built once, so another width later is an error that names the node."""
    g = trained()
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes") as caught:
        g.materialize(torch.zeros(8, 5))
    assert "`dense` (Dense, built for samples of shape (3,))" in caught.value.__notes__[0]


def test_nan_is_passed_on() -> None:
    """NaN in the input is the user's to look at; nothing refuses it."""
    g = trained()
    output, _ = g.forward(X * torch.nan)
    assert output.isnan().all()


def interrupted(g: Graph, error: type[BaseException]) -> None:
    with g.context():
        g.forward(X)
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_in_a_step_leaves_the_graph_usable(error: type[BaseException]) -> None:
    """After it, a step is the same as if nothing had happened."""
    torch.manual_seed(0)
    g = trained()
    g.make_optimizer(torch.optim.SGD, lr=0.1)
    other = Graph.somatize(Dense())
    other.materialize(X)
    other.set_node_state("dense", g.freeze().get_node_state("dense"))
    g.train()
    other.train()
    other.make_optimizer(torch.optim.SGD, lr=0.1)
    with pytest.raises(error):
        interrupted(g, error)
    for one in (g, other):
        with one.context() as ctx:
            one.zero_grad()
            output, _ = one.forward(X)
            one.backward(ctx, output.pow(2).sum())
        one.step(ctx)

    mine, hers = (list(one.parameters()) for one in (g, other))
    assert all(torch.equal(a, b) for a, b in zip(mine, hers, strict=True))


def test_a_generator_closed_inside_a_step_leaves_the_graph_usable() -> None:
    """A loop in a generator that nobody exhausts closes its step."""
    g = trained()

    def loop():
        while True:
            with g.context():
                yield g.forward(X)

    steps = loop()
    next(steps)
    steps.close()
    g.eval()
    assert g.forward(X).shape == (8, 2)
