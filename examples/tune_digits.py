"""An agent tunes a graph on scikit-learn's handwritten digits: it reads its health, and repairs it.

    tune (agent: train, health) -> test (tool) -> report (language model)

The two models are functions that answer by what the tools said, so that nothing asks the network;
`OpenAIModel("...")` in their place is a language model. What happened is in the journal of the run:
`soma report last` shows it as the conversation that took place.
"""

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Annotated, Literal

import torch
from msgspec import Meta
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

import soma
from soma import DifferentiableFilter, Flow, Graph
from soma.core import Message, Reply, ToolCall
from soma.flow import LLM, Agent, Tool
from soma.testing import ScriptedModel

EPOCHS = 6


@dataclass(frozen=True)
class Settings:
    """What the agent may choose."""

    width: Annotated[int, Meta(ge=4, le=256)]
    lr: Annotated[float, Meta(gt=0, le=1)]
    activation: Literal["relu", "leaky_relu", "gelu"]


class Tune(Agent):
    """Looks for settings with which every part learns."""

    schema = Settings
    turns = 12
    instructions = (
        "You tune a network on handwritten digits. Train it, read its health, and train again with "
        "other settings until no layer is dead. Answer with the settings of the best training that "
        "is healthy."
    )


class Report(LLM):
    """Says in a sentence what came of it."""

    prompt = "Report in one sentence:\n{input}"


class Dense(DifferentiableFilter):
    """Two hidden layers and a score for each digit."""

    def build_module(self, input_shape):
        activation = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "gelu": nn.GELU}[self.activation]
        return nn.Sequential(
            nn.Linear(input_shape[-1], self.width),
            activation(),
            nn.Linear(self.width, self.width),
            activation(),
            nn.Linear(self.width, 10),
        )


@cache
def rows():
    """Return images and digits to train with, to choose by, and to test with."""
    x, y = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(x / 16, y, test_size=0.3, random_state=0, stratify=y)
    x, x_valid, y, y_valid = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
    parts = (x, y), (x_valid, y_valid), (x_test, y_test)
    return [(torch.tensor(x, dtype=torch.float32), torch.tensor(y)) for x, y in parts]


def trained(settings, root):
    """Return a graph trained with the settings, and its run, which holds what an audit measured."""
    torch.manual_seed(0)
    (x, y), *_ = rows()
    g = Graph.somatize(Dense(width=settings.width, activation=settings.activation), cache=None)
    optimizer = partial(torch.optim.Adam, lr=settings.lr)
    with (
        g.track_run("training", kind="fit", params=asdict(settings), root=root) as run,
        g.gradient_audit(inside=True, channels=True),
    ):
        g.fit(x, y, epochs=EPOCHS, optimizer=optimizer, seed=0, progress=False)
    return g, run


def accuracy(g, part):
    """Return the share of rows whose best score is the right one."""
    x, y = part
    return round(float((g.forward(x).argmax(dim=1) == y).float().mean()), 4)


def tools_for(root):
    """Return what may be called in the flow; the trainings are runs below `root`."""

    def train(settings: Settings) -> dict[str, object]:
        """Train the network, and measure it on rows that it has not seen.

        Args:
            settings: of the network and the training.
        """
        g, run = trained(settings, root)
        return {"run": run.id, "accuracy": accuracy(g, rows()[1])}

    def health(run: str) -> str:
        """Read what an audit found in a training.

        Args:
            run: as `train` named it.
        """
        # Looked up among the runs: what a model says is never a path.
        view = next((one for one in soma.runs(root) if one.id == run), None)
        if view is None:
            raise LookupError(f"no training is called {run!r}")
        return view.verdict().pretty()

    def test(settings: Settings) -> dict[str, object]:
        """Train with the settings that were chosen, and measure on rows that nobody chose by."""
        g, _ = trained(settings, root)
        return {"settings": asdict(settings), "accuracy": accuracy(g, rows()[2])}

    return train, health, test


def think(messages: Sequence[Message]) -> Reply | str:
    """Answer as a careful person would: look at the health of each training before the next."""
    calls = {call.id: call for message in messages for call in message.calls}
    heard = [(calls[one.call_id], one.text) for one in messages if one.role == "tool"]
    trainings = [
        json.loads(call.arguments)["settings"] | json.loads(text)
        for call, text in heard
        if call.name == "train"
    ]
    findings = {
        json.loads(call.arguments)["run"]: re.findall(r"^\w+\[(\w+)", text, re.MULTILINE)
        for call, text in heard
        if call.name == "health"
    }
    number = len(heard) + 1
    if not trainings:
        return calling(number, "train", settings={"width": 16, "lr": 1.0, "activation": "relu"})
    last = trainings[-1]
    if last["run"] not in findings:
        return calling(number, "health", run=last["run"])
    settings = {name: last[name] for name in ("width", "lr", "activation")}
    found = findings[last["run"]]
    if {"DEAD", "DEAD_CHANNELS", "LR_HIGH"} & {*found}:
        said = f"{found[0]}: the steps are too large, so I make them ten times smaller."
        return calling(number, "train", said, settings=settings | {"lr": settings["lr"] / 10})
    if settings["width"] < 64:
        said = f"{last['accuracy']:.1%} and no layer is dead. I try a wider network."
        return calling(number, "train", said, settings=settings | {"width": 64})
    best = max((one for one in trainings if not findings[one["run"]]), key=lambda o: o["accuracy"])
    return json.dumps({name: best[name] for name in settings})


def calling(number: int, tool: str, said: str = "", **arguments: object) -> Reply:
    """Return a reply that calls one tool."""
    call = ToolCall(id=f"call_{number}", name=tool, arguments=json.dumps(arguments))
    return Reply(text=said, calls=(call,), stop="calls", model="scripted")


def summarise(messages: Sequence[Message]) -> str:
    """Write the report from what the test has given."""
    found = json.loads(messages[-1].text.partition("\n")[2])
    chosen = ", ".join(f"{name} {value}" for name, value in found["settings"].items())
    return f"With {chosen} the network reads {found['accuracy']:.1%} of the test's digits."


def flow_for(root):
    """Return the flow; its trainings are runs below `root`, beside its own."""
    train, health, test = tools_for(root)
    tune = Tune(ScriptedModel([think] * Tune.turns), tools=[train, health])
    report = Report(ScriptedModel([summarise]))
    return Flow.somatize(tune >> Tool(test) >> report, name="tune the digits")


def main() -> None:
    """Run the flow; show what was said, in first lines, and what each node did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=".soma")
    options = parser.parse_args()

    torch.set_num_threads(1)  # the network is small
    result = flow_for(options.root).run("Find good settings.", root=options.root)
    view = soma.RunView(result.run_dir)
    for entry in view.conversation():
        if entry.kind in ("reply", "call"):
            said = entry.text.splitlines() or [call.arguments for call in entry.calls]
            print(f"{entry.node}, {entry.who}: {said[0]}")
    print(f"\n{view.to_text()}\n\n{result.output}\n")
    print(f"Look next: soma report {result.id} --root {options.root}")


if __name__ == "__main__":
    main()
