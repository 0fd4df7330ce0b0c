"""Code as users write it; it has to pass `mypy --strict` and is never run."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

import soma
from soma import Compiler, DifferentiableFilter, Filter, FilterMeta, Graph, Inputs, errors
from soma.integrations.sinks import CsvSink, MLflowSink, export_run
from soma.tracking import Point, Sink


class Scale(Filter):
    def fit(self, x: object, y: object = None) -> object:
        assert isinstance(x, Tensor)
        return {"mean": x.mean(0)}

    def forward(self, x: object, state: object) -> object:
        return x


class Dense(DifferentiableFilter):
    def __init__(self, width: int) -> None:
        super().__init__(width=width)
        self.width = width

    def build_module(self, input_shape: object) -> nn.Module:
        return nn.Linear(4, self.width)

    def output_shape(self, input_shape: object) -> tuple[int, ...]:
        return (self.width,)


class Searched(Filter):
    width: int = soma.search(16, 256, step=16)
    rate: float = soma.search(1e-4, 1e-1, scale="log")
    share: float = soma.search(0, 1)
    activation: str = soma.search(choices=["relu", "gelu"])
    bias: bool = soma.search(choices=[True, False], default=False)
    norm: str | None = soma.search(choices=[None, "batch"])


def searching(g: Graph) -> Graph:
    space = soma.search_space(g)
    return soma.apply_params(g, space.defaults()).train()


def declaring() -> Graph:
    g = Graph.somatize((Scale() >> Dense(3) | Scale()) >> Dense(2), name="typed", seed=1)
    head: str = g.node("head", Dense(2))
    g.connect("dense_2", head).edge(head, "dense_2")
    meta: FilterMeta = g.filter(head).meta()
    assert meta.differentiable
    return Graph.somatize(Scale().to([Dense(2), Dense(3)]).collect(Dense(4)) >> g)


def judging(g: Graph) -> list[str]:
    plan = g.compile("differentiable")
    return [f"{one.level} {one.node}" for one in plan.diagnostics] + [
        one.message for one in Compiler().check_gradient_flow(g)
    ]


def training(g: Graph, x: Tensor, y: Tensor) -> object:
    g.materialize(x).train()
    optimizer: torch.optim.Optimizer = g.make_optimizer(torch.optim.SGD, lr=0.1)
    with g.context() as ctx:
        g.zero_grad()
        output, _ = g.forward(x)
        g.backward(ctx, nn.functional.mse_loss(output, y))
    norm: Tensor = g.clip_gradients(1.0)
    g.step(ctx, closure=None)
    g.set_optimizer({"all": optimizer}).step(only="all")
    names: list[str] = [name for name, _ in g.named_parameters()]
    with g.evaluating():
        g.forward(Inputs(a=x, b=y))
    return g.freeze().to("cpu").eval().forward(x), norm, names


def handling(g: Graph) -> None:
    try:
        g.fit([[1.0]], [1], epochs=1, validation=([[1.0]], [1])).forward([[1.0]])
    except errors.NotFitted as error:
        raise soma.errors.SomaError(str(error)) from error


def keeping(g: Graph, path: str) -> Graph:
    g.save(path, optimizer=True, random=True, extra={"epoch": 1}).load_state(g.state())
    return Graph.load(path, classes=[Dense], trust_modules=["mine."], strict=False, device="cpu")


def elsewhere(g: Graph, x: Tensor) -> list[str]:
    module: nn.Module = g.module()
    estimator = soma.as_estimator(g.unfitted(), kind="classifier", epochs=3, random_state=0)
    estimator.fit(x.numpy(), [0, 1])
    return [*module.state_dict(), *estimator.get_params()]


class Counting(Sink):
    count = 0

    def points(self, points: Sequence[Point]) -> None:
        self.count += len(points)


def telling(g: Graph, x: Tensor) -> int:
    with g.track_run("typed", sinks=[CsvSink("csv"), Counting()]) as run:
        g.forward(x)
        run.log("loss", 0.5)
    return export_run(run.dir, MLflowSink("sqlite:///mlflow.db", experiment="typed"))
