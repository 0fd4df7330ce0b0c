"""The lines of `events.jsonl` and `metrics.jsonl`: one small type each, written and read here.

Times are seconds since the run began.
"""

from msgspec import Struct, json


class MetricLine(Struct, frozen=True, gc=False):
    """A point that was logged."""

    name: str
    step: int
    value: float | str  # as `number_out` gives it
    time: float


class BeganLine(Struct, frozen=True, tag_field="event", tag="run_started"):
    """The run began; the first of all events."""

    time: float


class ContinuedLine(Struct, frozen=True, tag_field="event", tag="run_continued"):
    """The run was taken up again."""

    time: float


class NodeLine(Struct, frozen=True, gc=False, tag_field="event", tag="node", omit_defaults=True):
    """A node's turn, at its end."""

    node: str
    phase: str
    start: float
    seconds: float
    cached: bool = False
    thread: int = 0
    why: str | None = None  # it ran, where the cache was asked
    error: str | None = None  # the name of what it raised


class StepLine(Struct, frozen=True, gc=False, tag_field="event", tag="step"):
    """An optimizer step was taken."""

    step: int
    time: float


class TrainingLine(Struct, frozen=True, tag_field="event", tag="training_started"):
    """`fit` began to train."""

    epochs: int
    steps_per_epoch: int | None
    losses: dict[str, str]  # what each leaf minimises
    time: float


class EpochLine(Struct, frozen=True, tag_field="event", tag="epoch"):
    """A pass over the data has ended."""

    epoch: int
    loss: float | str
    validation_loss: float | str | None
    seconds: float
    time: float


class TrainedLine(Struct, frozen=True, tag_field="event", tag="training_finished"):
    """`fit` has ended its training."""

    time: float


EventLine = BeganLine | ContinuedLine | NodeLine | StepLine | TrainingLine | EpochLine | TrainedLine

encode = json.Encoder().encode
decode_metric = json.Decoder(MetricLine).decode
