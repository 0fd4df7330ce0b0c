"""One run of a flow from its start to its end, and from where it ended: directory and journal."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import ValidationError, convert

from soma.core import Event, Usage
from soma.errors import (
    BudgetSpent,
    InvalidInput,
    JournalMismatch,
    NoAnswer,
    Suspended,
    did_you_mean,
    listing,
)
from soma.flow._budget import Budget, Spending
from soma.flow._checks import compiled
from soma.flow._flat import flow_record
from soma.flow._model import Model
from soma.flow._replay import Replay
from soma.flow._running import Running, Scope
from soma.flow._suspend import Suspend
from soma.flow._turn import Turn
from soma.flow._walk import walk
from soma.tracking import (
    AskedLine,
    Journal,
    Run,
    RunListener,
    RunRecord,
    Secrets,
    continue_run,
    named_secrets,
    read_journal,
    runs_folder,
    track_run,
)

if TYPE_CHECKING:
    from soma.flow._declared import DeclaredFlow
    from soma.flow._flow import Flow

_BUDGET = "budget"  # of a run's parameters
_ENDS = "flow"  # what stands as the node of what goes in and comes out
_INTERRUPTING = (BudgetSpent, Suspended)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRun:
    """What came of a run of a flow.

    Args:
        output: of the last node; of several a dict.
        run_dir: the directory that holds all that happened, for `soma.RunView`.
        usage: the tokens of all replies, those before a resumption included.
        turns: how often models replied.
    """

    output: object
    run_dir: Path
    usage: Usage
    turns: int

    @property
    def id(self) -> str:
        """The id of the run, as `flow.resume` takes it."""
        return self.run_dir.name


def start(
    flow: "Flow",
    value: object,
    *,
    root: "str | os.PathLike[str]",
    name: str | None,
    tags: Iterable[str],
    params: Mapping[str, object] | None,
    answers: Mapping[str, object] | None,
    budget: Budget | None,
) -> FlowRun:
    """Run a flow in a new directory."""
    plan = compiled(flow, "inference")
    budget = budget or flow.budget
    kept = {} if budget is None else {_BUDGET: _limits(budget)}
    run = track_run(
        flow.name if name is None else name,
        kind="flow",
        tags=tags,
        params={**(params or {}), **kept},
        root=root,
        secrets=_secrets(flow),
    )
    with _telling(run):
        run.record_graph(flow_record(flow, run.secrets.text))
        run.record_diagnostics(plan.diagnostics)
        journal = Journal(run.dir, run.secrets)
        with _closing(journal):
            return _through(flow, lambda: value, run, journal, Replay(), answers or {}, budget)


def go_on(
    flow: "Flow",
    run: "str | os.PathLike[str]",
    *,
    root: "str | os.PathLike[str]",
    answer: object,
    answers: Mapping[str, object] | None,
    budget: Budget | None,
) -> FlowRun:
    """Go on with a run in its directory."""
    compiled(flow, "inference")
    record = RunRecord(_folder(run, root))
    budget = budget or _budget_of(record) or flow.budget
    hidden = Secrets(_secrets(flow))
    before = Replay(read_journal(record.dir))
    _check_nodes(flow, record, before)
    if record.state == "completed":
        return _through(flow, _no_input, None, None, before, {}, budget, record.dir, hidden)
    given = _answers(before, record.id, answer, answers)
    taken = continue_run(record.dir, seconds=before.seconds, secrets=hidden)
    with _telling(taken):
        # Read again: nobody else writes from here on.
        replay = Replay(read_journal(record.dir))
        journal = Journal(taken.dir, hidden)
        with _closing(journal):
            return _through(flow, _no_input, taken, journal, replay, given, budget)


def _through(
    flow: "Flow",
    given: Callable[[], object],
    run: Run | None,
    journal: Journal | None,
    replay: Replay,
    answers: Mapping[str, object],
    budget: Budget | None,
    folder: Path | None = None,
    secrets: Secrets | None = None,
) -> FlowRun:
    say: Callable[[Event], None] = RunListener(run) if run is not None else lambda event: None
    running = Running(
        folder=run.dir if run is not None else folder or Path(),
        run=run,
        journal=journal,
        replay=replay,
        secrets=run.secrets if run is not None else secrets or Secrets(),
        answers=answers,
        side_by_side=flow.side_by_side,
        on_text=flow.on_text,
        say=say,
        walk=walk,
    )
    spending = Spending(budget, flow.name, running.seconds)
    scope = Scope(running=running, nodes="", at="", model=flow.model, spending=spending)
    ends = Turn(scope, _ENDS)
    given_back = walk(flow, ends.value("input", None, given), scope)
    return FlowRun(
        output=ends.value("output", None, lambda: given_back),
        run_dir=running.folder,
        usage=spending.usage,
        turns=spending.turns,
    )


def _check_nodes(flow: "Flow", record: RunRecord, before: Replay) -> None:
    """Raise where the journal tells of a node that the flow lacks: it may have another name now."""
    if record.state != "unreadable" and record.manifest.kind != "flow":
        raise InvalidInput(
            f"the run `{record.id}` is a {record.manifest.kind!r:.80} and no run of a flow. "
            "`soma.runs()` lists the runs with their kinds."
        )
    known = [_ENDS, *(id for id, _ in flow.filters())]
    for node in before.nodes:
        if node not in known:
            raise JournalMismatch(
                f"the journal tells what the node `{node}` did, and this flow has no such node."
                f"{did_you_mean(node, known)} A changed flow is another run: start it with "
                "`flow.run(...)`, or resume with the flow as it was."
            )


def _no_input() -> object:
    """Refuse to go on with nothing: what a run was given is the first line of its journal."""
    raise JournalMismatch(
        "the journal does not tell what the flow was given: the run ended before that was kept, "
        "or the file is damaged. Start another run with `flow.run(...)`."
    )


@contextmanager
def _telling(run: Run) -> Iterator[None]:
    """Let a run end as it should, with a word on how to go on."""
    run.interrupted_by(*_INTERRUPTING)
    how = f"flow.resume({run.id!r}"
    with run:
        try:
            yield
        except Suspend as asked:
            raise Suspended(
                _told(Replay(read_journal(run.dir)).open_questions(), how),
                question=asked.question,
                at=asked.at,
            ) from None
        except BaseException as error:
            if not isinstance(error, JournalMismatch | NoAnswer):  # which would come again
                error.add_note(f"The run can go on where it stands: `{how})`.")
            raise


def _told(asked: Sequence[AskedLine], how: str) -> str:
    """Return the questions that are open, and how they are answered."""
    given = ", ".join(f"{one.at!r}: ..." for one in asked)
    answer = f"answers={{{given}}}" if len(asked) > 1 else "answer=..."
    said = "".join(f"`{one.at}` asks: {one.question}\n" for one in asked)
    return f"{said}Answer with `{how}, {answer})`."


@contextmanager
def _closing(journal: Journal) -> Iterator[None]:
    try:
        yield
    finally:
        journal.close()


def _folder(run: "str | os.PathLike[str]", root: "str | os.PathLike[str]") -> Path:
    """Return the directory that an id or a path names."""
    text = os.fspath(run)
    below_root = runs_folder(root) / text
    return below_root if Path(text).name == text and below_root.is_dir() else Path(text)


def _limits(budget: Budget) -> dict[str, float]:
    """Return what a budget sets a limit to."""
    return {name: most for name, most in asdict(budget).items() if most is not None}


def _budget_of(record: RunRecord) -> Budget | None:
    """Return the budget that a run was started with."""
    kept = record.manifest.params.get(_BUDGET)
    try:
        return None if kept is None else convert(kept, Budget)
    except (ValidationError, InvalidInput):
        return None


def _answers(
    replay: Replay, id: str, answer: object, answers: Mapping[str, object] | None
) -> Mapping[str, object]:
    """Return answers by place."""
    if answer is None:
        return answers or {}
    asked = replay.open_questions()
    if len(asked) != 1:
        places = listing(one.at for one in asked)
        told = f"{len(asked)} questions are open, at {places}" if asked else "no question is open"
        how = ", and `answers={place: answer}` takes them" if asked else ": resume it without one"
        raise InvalidInput(f"an answer came for the run `{id}`; {told}{how}.")
    return {**(answers or {}), asked[0].at: answer}


def _secrets(flow: "DeclaredFlow") -> set[str]:
    """Return what no file of a run may hold."""
    found = {*named_secrets(), *getattr(flow, "secrets", ())}
    todo, seen = [flow], set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        found |= {*getattr(one, "secrets", ())}
        found |= _keys_of(one.model)
        for node in one.nodes().values():
            for value in vars(node).values():
                found |= _keys_of(value)
            todo += node.parts().values()
    return found


def _keys_of(value: object) -> set[str]:
    """Return what a model says that nobody may read, if a value is one."""
    return {*getattr(value, "secrets", ())} if isinstance(value, Model) else set()
