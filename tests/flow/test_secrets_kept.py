"""What nobody may read is in no file of a run, wherever it came from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soma import Filter, Flow, Graph
from soma.core import Reply
from soma.errors import InvalidInput, InvalidOutput, SomaError, Suspended
from soma.flow import IO, LLM, Agent, Computation, Condition, OpenAIModel, Tool
from soma.testing import ScriptedModel
from tests.flow.talking import NoModel, calling, only_run, told

SECRET = 'hunter2"\\ü-and-more'


def files_with(text: str, folder: Path) -> list[str]:
    """Return the files below a folder that hold a text, as it is or as JSON writes it."""
    forms = {text, text.replace("\\", "\\\\").replace('"', '\\"'), text.split('"')[0]}
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and any(form.encode() in path.read_bytes() for form in forms)
    ]


def look(name: str) -> str:
    """Give the secret away."""
    return f"the password of {name} is {SECRET}"


def data(text: str) -> dict[str, Any]:
    """Give the secret away beside an array."""
    return {"x": np.zeros(2000), "note": SECRET}


def test_a_secret_is_in_no_file(tmp_path: Path) -> None:
    """Inputs, prompts, replies, calls, observations, values, names and parameters hide it."""
    replies = [calling(("look", {"name": SECRET})), told, told, Reply(text=f"ask {SECRET}")]
    flow = Flow.somatize(
        Agent(tools=[look], instructions=f"Use {SECRET}.")
        >> Condition(lambda text: SECRET not in text, {"yes": LLM(), "no": None})
        >> LLM()
        >> Tool(data)
        >> IO.ask("Is {note} right?"),
        model=ScriptedModel(replies),
        secrets=[SECRET],
    )

    with pytest.raises(Suspended):
        flow.run(
            f"in {SECRET}", root=tmp_path, name=SECRET, tags=[SECRET], params={SECRET: [SECRET]}
        )

    assert files_with(SECRET, tmp_path) == []
    assert files_with("***", tmp_path) != []


def test_a_run_with_hidden_texts_goes_on(tmp_path: Path) -> None:
    """What was hidden is the same for a run that goes on, and nobody is asked again."""
    flow = Flow.somatize(
        Agent(tools=[look]) >> IO.ask() >> LLM(prompt=f"{SECRET} {{input}}"), secrets=[SECRET]
    )
    flow.model = ScriptedModel([calling(("look", {"name": "a"})), told, told])
    with pytest.raises(Suspended):
        flow.run(SECRET, root=tmp_path)
    done = flow.resume(only_run(tmp_path), answer=SECRET)
    flow.model = NoModel()

    assert flow.resume(only_run(tmp_path)) == done
    assert files_with(SECRET, tmp_path) == []


def test_an_error_hides_it_too(tmp_path: Path) -> None:
    """The reason in the status is without the secret."""

    def fail(text: str) -> str:
        """Fail."""
        raise ValueError(f"wrong password: {SECRET}")

    with pytest.raises(ValueError, match="wrong password"):
        Flow.somatize(Tool(fail), secrets=[SECRET]).run("x", root=tmp_path)

    assert files_with(SECRET, tmp_path) == []


@dataclass
class Account:
    """A value of a class, which is not looked through."""

    password: str


def test_a_secret_in_an_object_is_refused(tmp_path: Path) -> None:
    """Where it cannot be hidden, the value is not kept."""

    def account(name: str) -> Any:
        """Give the secret away."""
        return Account(SECRET)

    with pytest.raises(InvalidOutput, match="a `Account` with a secret in it"):
        Flow.somatize(Tool(account), secrets=[SECRET]).run("x", root=tmp_path)

    assert files_with(SECRET, tmp_path) == []


class Remote(Filter):
    """Holds a key."""

    def __init__(self, key: str) -> None:
        self.key = key

    def fit(self, x: Any, y: object = None) -> object:
        """Learn nothing."""
        return 0.0

    def forward(self, x: object, state: object) -> object:
        """Return what comes."""
        return x


def test_a_fitted_graph_that_holds_a_secret_is_refused(tmp_path: Path) -> None:
    """Its bundle would tell the parameters of its filters."""
    graph = Graph.somatize(Remote(SECRET), cache=None)
    flow = Flow.somatize(Computation(graph, mode="fit"), secrets=[SECRET])

    with pytest.raises(InvalidOutput, match="a secret stands in it"):
        flow.run({"x": [1]}, root=tmp_path)

    assert files_with(SECRET, tmp_path) == []


@pytest.mark.parametrize(("most", "fails"), [(2_000, True), (20_000, False)])
def test_a_secret_is_hidden_before_a_text_is_cut(tmp_path: Path, most: int, *, fails: bool) -> None:
    """Neither file nor model get its beginning where the text of a tool is too long."""
    text = "x" * (most - 25) + SECRET

    def leak() -> Any:
        """Give the secret away."""
        if fails:
            raise ValueError(text)
        return Account(text)

    model = ScriptedModel([calling(("leak", {})), told])
    output = Flow.somatize(Agent(model, tools=[leak]), secrets=[SECRET]).run(root=tmp_path).output

    assert "hunter" not in str(output)
    assert files_with(SECRET[:4], tmp_path) == []


def test_keys_of_the_environment_are_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables named like a key, a token, a secret or a password are hidden."""
    monkeypatch.setenv("SERVICE_API_KEY", "abc-12345678")
    monkeypatch.setenv("MONKEY", "yes")  # too short to be one
    flow = Flow.somatize(LLM(), model=ScriptedModel(["abc-12345678 yes"]))

    assert flow.run("x", root=tmp_path).output == "*** yes"
    assert files_with("abc-12345678", tmp_path) == []


def test_a_password_in_an_address_is_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the variable is called that holds the address."""
    monkeypatch.setenv("DATABASE_URL", "postgres://me:opensesame@localhost/db")
    flow = Flow.somatize(LLM(), model=ScriptedModel(["opensesame at localhost"]))

    assert flow.run("x", root=tmp_path).output == "*** at localhost"


def test_the_key_of_a_model_is_a_secret(tmp_path: Path) -> None:
    """A model's own key is hidden, wherever in the flow the model stands."""
    model = OpenAIModel("m", base_url="http://127.0.0.1:9", api_key="key-of-mine")
    inner = Flow.somatize(LLM(), model=model, name="inner")
    flow = Flow.somatize(LLM(ScriptedModel(["key-of-mine"])) >> IO.ask("{input}?") >> inner)

    with pytest.raises(Suspended, match=r"\*\*\*\?"):
        flow.run("x", root=tmp_path)

    assert files_with("key-of-mine", tmp_path) == []


@pytest.mark.parametrize("wrong", ["", "abc", 12345])
def test_a_short_secret_is_refused(tmp_path: Path, wrong: Any) -> None:
    """One that would be found everywhere is not taken, and not told."""
    with pytest.raises(InvalidInput, match="4 characters or more"):
        Flow.somatize(IO.ask(), secrets=[wrong]).run(root=tmp_path)


def test_files_of_a_run_are_its_owners(tmp_path: Path) -> None:
    """Nobody else reads journal and values."""
    flow = Flow.somatize(Tool(data) >> IO.ask())
    with pytest.raises(SomaError):
        flow.run("x", root=tmp_path)

    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "runs").rglob("*")}

    assert modes == {0}
