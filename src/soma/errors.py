"""Every error and warning soma raises on purpose.

    SomaError
    ├── NotAFilter (TypeError)            something that is no filter in an expression
    ├── InvalidNodeId (ValueError)        an id that is taken or not allowed
    ├── InvalidTarget (ValueError)        a name that no worker can have
    ├── UnknownNode (LookupError)         a node id that this graph does not have
    ├── CompileError (ValueError)         a graph that cannot run; holds all its diagnostics
    ├── NotFitted (RuntimeError)          a node that needs `fit` first
    ├── NotMaterialized (RuntimeError)    a module that needs `materialize` first
    ├── ModeError (RuntimeError)          training asked of a graph in eval, or the reverse
    ├── NoOptimizer (RuntimeError)        `step` before an optimizer
    ├── InvalidInput (ValueError)         data that no node can work on
    ├── InvalidOutput (TypeError)         an answer of a filter that breaks its contract
    ├── InputChanged (RuntimeError)       a filter that wrote to its input
    ├── InvalidCache (ValueError)         something that is no cache, or no size of one
    ├── InvalidThreshold (ValueError)     a threshold that does not exist, or no value for one
    ├── InvalidMeasurements (ValueError)  data that does not tell what an audit measured
    ├── UnknownFlag (LookupError)         a flag that no rule gives
    ├── GradientHealthError (RuntimeError)  an audit that found something wrong
    ├── TrainingLost (RuntimeError)       a training that can certainly not recover
    ├── UnknownRun (LookupError)          a run directory that is not there
    ├── RunNotWritten (OSError)           a run directory that does not take what is logged
    ├── RunBusy (RuntimeError)            a run that somebody else goes on with
    ├── NotRecorded (LookupError)         something that the record of a run does not hold
    ├── WorkerUnavailable (LookupError)   a worker that is not there, or not to be had
    ├── WorkerMismatch (RuntimeError)     a worker with other versions
    ├── WorkerLost (ConnectionError)      a worker that is gone
    │   └── WorkerTimeout (TimeoutError)  or that did not answer in time
    ├── NotSent (TypeError)               something that cannot cross to a worker
    ├── RemoteFailure (RuntimeError)      an exception on a worker
    ├── TornStep (RuntimeError)           a step that not all workers have taken
    ├── CheckpointError (ValueError)      a bundle that cannot be read, or a graph that fits in none
    ├── BudgetSpent (RuntimeError)        a flow that may not go on: turns, tokens or time are spent
    ├── JournalMismatch (RuntimeError)    a flow that asks something else than its journal tells
    ├── NoAnswer (ValueError)             a model that gave nothing that can be used
    ├── Suspended (RuntimeError)          a flow that waits for a person's answer
    ├── InvalidSchema (TypeError)         a type, signature or schema that JSON cannot follow
    ├── SchemaMismatch (ValueError)       a text of a model that does not fit its schema
    ├── ModelError (RuntimeError)         a language model that gave no reply, and will not
    │   ├── ModelTimeout (TimeoutError)   or not in its time
    │   └── ModelUnavailable (ConnectionError)  or not now: asking later may help
    └── MissingExtra (ImportError)        an optional library that is not installed

    SomaWarning (UserWarning)
    ├── CacheWarning                      a cache that does not keep or give back what it should
    ├── CheckpointWarning                 something that a bundle lacks, where that was allowed
    ├── GradientWarning                   a gradient that does not get where it was wanted
    ├── SinkWarning                       a sink that takes no more of a run; the run goes on
    └── UntrainedWarning                  modules whose weights are still the initial ones

Each class also inherits the builtin that people already catch. Messages say what
came, what was wanted and what to do, in that order.
"""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "BudgetSpent",
    "CacheWarning",
    "CheckpointError",
    "CheckpointWarning",
    "CompileError",
    "GradientHealthError",
    "GradientWarning",
    "InputChanged",
    "InvalidCache",
    "InvalidInput",
    "InvalidMeasurements",
    "InvalidNodeId",
    "InvalidOutput",
    "InvalidSchema",
    "InvalidTarget",
    "InvalidThreshold",
    "JournalMismatch",
    "MissingExtra",
    "ModeError",
    "ModelError",
    "ModelTimeout",
    "ModelUnavailable",
    "NoAnswer",
    "NoOptimizer",
    "NotAFilter",
    "NotFitted",
    "NotMaterialized",
    "NotRecorded",
    "NotSent",
    "RemoteFailure",
    "RunBusy",
    "RunNotWritten",
    "SchemaMismatch",
    "SinkWarning",
    "SomaError",
    "SomaWarning",
    "Suspended",
    "TornStep",
    "TrainingLost",
    "UnknownFlag",
    "UnknownNode",
    "UnknownRun",
    "UntrainedWarning",
    "WorkerLost",
    "WorkerMismatch",
    "WorkerTimeout",
    "WorkerUnavailable",
    "did_you_mean",
    "listing",
]


class SomaError(Exception):
    """The root of every error raised by soma."""


class NotAFilter(SomaError, TypeError):
    """Something that is no filter stands in an expression."""


class InvalidNodeId(SomaError, ValueError):
    """A node id is already taken, or holds characters that ids refuse."""


class InvalidTarget(SomaError, ValueError):
    """A filter was placed where no worker can be."""


class UnknownNode(SomaError, LookupError):
    """A node id was asked for that the graph does not have."""


class CompileError(SomaError, ValueError):
    """A graph cannot run as declared; `diagnostics` holds every reason."""

    def __init__(self, message: str, diagnostics: Iterable[object] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class NotFitted(SomaError, RuntimeError):
    """A node was run that has to be fitted first."""


class NotMaterialized(SomaError, RuntimeError):
    """A module was needed that has not been built yet."""


class ModeError(SomaError, RuntimeError):
    """The graph is in the wrong mode for what was asked."""


class NoOptimizer(SomaError, RuntimeError):
    """A step was asked for before there was an optimizer."""


class InvalidInput(SomaError, ValueError):
    """The data given cannot be worked on."""


class InvalidOutput(SomaError, TypeError):
    """A filter answered with something that its contract does not allow."""


class InputChanged(SomaError, RuntimeError):
    """A filter wrote to an input that somebody else still reads."""


class InvalidCache(SomaError, ValueError):
    """What was given is no cache, or no size of one."""


class InvalidThreshold(SomaError, ValueError):
    """A verdict was asked for with a threshold that no rule has, or a value that is none."""


class InvalidMeasurements(SomaError, ValueError):
    """What was read does not tell what an audit has measured."""


class UnknownFlag(SomaError, LookupError):
    """An explanation was asked for of a flag that no rule gives."""


class UnknownRun(SomaError, LookupError):
    """A run was asked for whose directory is not there."""


class RunNotWritten(SomaError, OSError):
    """A run directory does not take what is logged; the message names file and reason."""


class RunBusy(SomaError, RuntimeError):
    """A run cannot be taken up, since somebody else goes on with it."""


class NotRecorded(SomaError, LookupError):
    """Something was asked of a run that its record does not hold."""


class WorkerUnavailable(SomaError, LookupError):
    """A worker was asked for that is not there, or cannot be had."""


class WorkerMismatch(SomaError, RuntimeError):
    """A worker has other versions than the program that needs it."""


class WorkerLost(SomaError, ConnectionError):
    """A worker is gone, and with it what it held."""


class WorkerTimeout(WorkerLost, TimeoutError):
    """A worker did not answer in time."""


class NotSent(SomaError, TypeError):
    """Something cannot be sent to a worker, or is of a class that is not there."""


class RemoteFailure(SomaError, RuntimeError):
    """A filter raised an exception on a worker; the message holds it, with its trace."""


class TornStep(SomaError, RuntimeError):
    """Some workers may have taken an optimizer's step and others not."""


class CheckpointError(SomaError, ValueError):
    """A bundle cannot be read, or a graph not be written as one; the message names what."""


class BudgetSpent(SomaError, RuntimeError):
    """A flow has used its turns, tokens or time; the message says how to go on."""


class JournalMismatch(SomaError, RuntimeError):
    """A flow that goes on with a run asks something else than the run's journal tells."""


class NoAnswer(SomaError, ValueError):
    """A model refused, was cut off, or answered in a form that cannot be used."""


class Suspended(SomaError, RuntimeError):
    """A flow waits for a person's answer; the message says the question and how to go on.

    Args:
        question: for the person.
        at: where in the run it was asked.
    """

    def __init__(self, message: str, *, question: str, at: str) -> None:
        super().__init__(message)
        self.question = question
        self.at = at


class InvalidSchema(SomaError, TypeError):
    """A type, a signature or a JSON schema is none that values of JSON can be checked by."""


class SchemaMismatch(SomaError, ValueError):
    """A text that a model wrote does not fit its schema; the message tells the model what to do."""


class ModelError(SomaError, RuntimeError):
    """A language model gave no reply; asking again as it is will not help."""


class ModelTimeout(ModelError, TimeoutError):
    """A language model gave no whole reply in the time that it had."""


class ModelUnavailable(ModelError, ConnectionError):
    """A language model cannot be reached, is busy or failed; asking again later may help."""


class MissingExtra(SomaError, ImportError):
    """An optional library is needed and not installed."""


class GradientHealthError(SomaError, RuntimeError):
    """An audit found something wrong with the modules that it watched."""


class TrainingLost(SomaError, RuntimeError):
    """A training can certainly not recover; the message says why."""


class SomaWarning(UserWarning):
    """The root of every warning given by soma."""


class CacheWarning(SomaWarning):
    """The cache does not keep or give back what it should; answers stay right."""


class CheckpointWarning(SomaWarning):
    """A bundle lacks something, or holds more than was asked for; it was loaded all the same."""


class GradientWarning(SomaWarning):
    """A gradient does not get where it was wanted."""


class SinkWarning(SomaWarning):
    """A sink takes no more of a run; the run goes on, and its directory has everything."""


class UntrainedWarning(SomaWarning):
    """Modules keep the weights they were built with."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean …?` for the nearest known name, or an empty string."""
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean `{near[0]}`?" if near else ""


def listing(names: Iterable[str], *, most: int = 8) -> str:
    """Return names in backticks, comma separated, cut after `most` of them."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) > most:
        quoted[most:] = [f"{len(quoted) - most} more"]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
