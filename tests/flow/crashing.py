"""A process that runs a flow, notes each effect in a file, and may kill itself in one of them.

Arguments: the root of runs, the file, and the number of the effect in which it ends; 0 for none.
Run without a run below the root it starts one, else it goes on with the one that is there.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from soma import Flow
from soma.core import Message, Reply
from soma.flow import LLM, Agent, Condition, Tool
from tests.flow.talking import calling

ROOT, NOTES, AT = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])


def noted(effect: str) -> None:
    """Note an effect; in the one that was asked for, this process ends, or waits to be ended."""
    with NOTES.open("a") as file:
        file.write(f"{effect}\n")
        file.flush()
        os.fsync(file.fileno())
    if len(NOTES.read_text().splitlines()) == AT:
        os.kill(os.getpid(), signal.SIGKILL)
    if AT < 0 and effect.startswith("note"):
        sys.stdout.write("waiting\n")
        sys.stdout.flush()
        time.sleep(60)


class Echo:
    """A model that calls tools once, and else says what it heard."""

    def complete(self, messages: Sequence[Message], tools: Any, schema: Any, options: Any) -> Reply:
        """Return a reply."""
        noted(f"model {messages[-1].text}")
        if tools and messages[-1].role == "user":
            return calling(("note", {"number": 1}), ("pay", {"amount": 5}))
        if tools:
            return Reply(text=" and ".join(one.text for one in messages if one.role == "tool"))
        return Reply(text=f"{messages[-1].text}!")


def note(number: int) -> str:
    """Note a number."""
    noted(f"note {number}")
    return "noted"


def pay(amount: int) -> str:
    """Pay, which must not happen twice."""
    noted(f"pay {amount}")
    return "paid"


def flow() -> Flow:
    """Return a flow with all that can happen in one."""
    agent = Agent(tools=[note, Tool(pay, once=True)])
    loop = Condition.loop(LLM(), until=lambda text: text.endswith("!!"), at_most=5)
    fork = LLM(prompt="left {input}") | LLM(prompt="right {input}")
    return Flow.somatize(agent >> loop >> fork, model=Echo(), side_by_side=1)


def outcome() -> str:
    """Run the flow, or go on with it, and return what it gives."""
    runs = [*(ROOT / "runs").iterdir()] if ROOT.exists() else []
    result = flow().resume(runs[0]) if runs else flow().run("task", root=ROOT)
    assert isinstance(result.output, dict)
    return "\n".join(map(str, result.output.values()))


if __name__ == "__main__":
    sys.stdout.write(f"{outcome()}\n")
