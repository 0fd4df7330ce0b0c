"""Workers end, begin and refuse as processes should, and nothing of them is left."""

import json
import os
import signal
import sys
from pathlib import Path
from threading import Thread

import msgspec
import pytest
import torch
from torch.optim import SGD

from soma import Graph
from soma.distributed import Meeting, Versions, connect, disconnect, versions
from soma.distributed._current import kept_settings
from soma.distributed._records import Request
from soma.errors import WorkerLost, WorkerMismatch, WorkerUnavailable
from tests.distributed import processes
from tests.distributed.graphs import X, weights
from tests.distributed.test_faults import step
from tests.training.filters import Dense

pytestmark = [pytest.mark.process, pytest.mark.slow]

TRAIN_FOR_EVER = """
from tests.distributed.test_faults import *
g = Graph.somatize(Dense(2).at("worker1")).materialize(X).train()
g.make_optimizer(SGD, lr=0.1)
while True:
    step(g)
    print("stepped", flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Have a folder for workers, for this user alone."""
    tmp_path.chmod(0o700)
    return tmp_path


def test_a_client_that_is_killed_leaves_the_worker_free(folder: Path) -> None:
    """The process of its session ends within seconds, and the next program is served."""
    with processes.worker(folder) as worker:
        for _ in range(2):
            with processes.client(TRAIN_FOR_EVER, folder) as client:
                assert client.stdout is not None
                assert client.stdout.readline() == "stepped\n", client.communicate()
                (session,) = processes.children(worker.pid)
                client.kill()
                processes.until(lambda one=session: not processes.lives(one), seconds=5)
        processes.until(lambda: not [*(folder / "requests").glob("*/*")], seconds=5)


def test_a_worker_that_is_killed_takes_its_sessions_along(folder: Path) -> None:
    """The process of a session does not outlive the worker that started it."""
    with processes.worker(folder) as worker, processes.client(TRAIN_FOR_EVER, folder) as client:
        assert client.stdout is not None
        client.stdout.readline()
        (session,) = processes.children(worker.pid)
        worker.kill()
        processes.until(lambda: not processes.lives(session), seconds=5)
        processes.until(lambda: client.poll() is not None, seconds=15)
        said = client.communicate()[1]

    assert "WorkerLost: worker1" in said
    assert processes.names(folder) == []


def test_all_sockets_are_on_loopback(folder: Path) -> None:
    """Neither side listens where another machine could reach it."""
    with processes.worker(folder) as worker, processes.client(TRAIN_FOR_EVER, folder) as client:
        assert client.stdout is not None
        client.stdout.readline()
        (session,) = processes.children(worker.pid)
        found = [processes.listeners(one) for one in (client.pid, worker.pid, session)]

    assert processes.addresses(set.union(*found)) <= processes.LOOPBACK
    assert found[1] == set()


def test_the_end_of_a_worker_is_soon_and_clean(folder: Path) -> None:
    """Ctrl-C ends it with code 0, its sessions with it, and nothing is left in the folder."""
    with processes.worker(folder) as worker, kept_settings():
        connect("worker1", folder=folder)
        children = processes.children(worker.pid)
        disconnect()
        worker.send_signal(signal.SIGINT)
        code = worker.wait(timeout=60)
        assert worker.stdout is not None
        said = next(line for line in worker.stdout if "ends" in line)

    assert (code, said) == (0, "worker worker1 ends\n")
    processes.until(lambda: not any(map(processes.lives, children)), seconds=30)
    left = [path.name for path in folder.rglob("*") if path.is_file()]
    assert left == ["worker1.lock"]


def test_a_hanging_session_is_ended_by_its_worker(folder: Path) -> None:
    """A process that stands still when its client has gone is killed."""
    with processes.worker(folder) as worker, kept_settings():
        connect("worker1", folder=folder, timeout=2)
        (session,) = processes.children(worker.pid)
        os.kill(session, signal.SIGSTOP)
        disconnect()
        processes.until(lambda: not processes.lives(session), seconds=15)
        connect("worker1", folder=folder)


@pytest.mark.parametrize("part", ["protocol", "python", "torch", "soma"])
def test_a_card_of_other_versions(part: str, folder: Path) -> None:
    """A program refuses a worker with another Python, torch or soma, and says which."""
    meeting = Meeting(folder)
    with meeting.present("worker1", "cpu"), kept_settings():
        path = folder / "workers" / "worker1.json"
        path.write_text(json.dumps(_aged(json.loads(path.read_text()), part)))
        with pytest.raises(WorkerMismatch, match=rf"worker1 .*{part} .* here, 0 there"):
            connect("worker1", folder=folder)


def _aged(told: dict[str, dict[str, object]], part: str) -> dict[str, dict[str, object]]:
    kind = type(told["versions"][part])
    return {**told, "versions": {**told["versions"], part: kind(0)}}


def test_a_request_of_other_versions(folder: Path) -> None:
    """A worker refuses to begin a session for a program with another torch."""
    meeting, own = Meeting(folder), msgspec.to_builtins(versions())
    other = msgspec.convert({**own, "torch": "0"}, Versions)
    with processes.worker(folder), meeting.opened() as session:
        facts = (session, session, 1, 2, 0, 5.0, other, "lo", "", (), None, None, ())
        meeting.ask("worker1", Request(*facts))
        processes.until(lambda: meeting.answered(session, "worker1"))
        refusal = meeting.answered(session, "worker1")

    assert refusal is not None
    assert refusal.startswith(f"torch {own['torch']} here, 0 there")


def test_a_worker_that_dies_before_it_joins(folder: Path) -> None:
    """A program does not wait for ever for a process that was ready and is gone."""
    meeting = Meeting(folder)

    def answer_once() -> None:
        processes.until(lambda: [*(folder / "requests").glob("*/*.json")])
        request = meeting.next_request("worker1")
        assert request is not None
        meeting.answer(request.session, "worker1", None)

    with meeting.present("worker1", "cpu"), kept_settings():
        thread = Thread(target=answer_once)
        thread.start()
        with pytest.raises(WorkerLost, match="did not all join"):
            connect("worker1", folder=folder, timeout=2)
        thread.join()
    assert [*(folder / "sessions").iterdir()] == []


def test_a_folder_that_others_can_write_to(tmp_path: Path) -> None:
    """Neither a worker nor a program takes it."""
    tmp_path.chmod(0o770)
    with processes.worker(tmp_path) as worker:
        said = worker.communicate(timeout=20)[1]

    assert worker.returncode == 2
    assert f"chmod 700 {tmp_path}" in " ".join(said.split())
    with kept_settings(), pytest.raises(WorkerUnavailable, match="chmod 700"):
        connect("worker1", folder=tmp_path)


def test_two_workers_of_one_name(folder: Path) -> None:
    """The second one does not start, and the first goes on."""
    with processes.worker(folder) as first, processes.worker(folder) as second:
        said = second.communicate(timeout=20)[1]
        assert second.returncode == 2
        assert "there is a worker `worker1`" in " ".join(said.split())
        assert first.poll() is None
        assert processes.names(folder) == ["worker1"]


def test_a_worker_that_is_not_there(folder: Path) -> None:
    """The error names those that are, and how to start the one that is wanted."""
    with processes.worker(folder), kept_settings():
        with pytest.raises(WorkerUnavailable, match=r"there is `worker1`\. Did you mean"):
            connect("worker11", folder=folder)
        with pytest.raises(WorkerUnavailable, match="soma worker --name gpu"):
            connect("gpu", folder=folder)


def test_a_class_of_a_notebook(folder: Path) -> None:
    """A class that is in no file is refused, with what to do."""
    code = """
from tests.distributed.test_faults import *
class Own(Dense): pass
Graph.somatize(Own(2).at("worker1")).materialize(X)
"""
    with processes.worker(folder), processes.client(code, folder) as client:
        said = client.communicate(timeout=40)[1]

    assert "NotSent: worker1 (`own`) cannot read" in said
    assert "Can't get attribute 'Own' on <module '__main__' (built-in)>. A filter" in said
    assert "not into a function, a notebook or a shell" in said


def test_the_list_of_workers(folder: Path) -> None:
    """`soma worker --list` shows those that live, for people and for programs."""
    with processes.worker(folder, "worker1", "--device", "cpu") as worker:
        (card,) = processes.listed(folder, "--json")
        assert isinstance(card, dict)
        assert (card["name"], card["pid"], card["device"]) == ("worker1", worker.pid, "cpu")
        assert "worker1" in processes.listed(folder, "--plain")
        worker.kill()
        worker.wait()
        assert processes.listed(folder, "--json") == []


def test_a_device_that_is_not_there(folder: Path) -> None:
    """A worker with an unknown device tells the program so."""
    with processes.worker(folder, "worker1", "--device", "nonsense"), kept_settings():  # noqa: SIM117
        with pytest.raises(WorkerMismatch, match="nonsense"):
            connect("worker1", folder=folder)


def test_a_worker_is_started_again(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A new process goes on from a state, from frozen weights and from a file, bit for bit."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("saved") / "g.soma"
    with kept_settings():
        with processes.worker(folder):
            connect(folder=folder)
            g = Graph.somatize(Dense(3).at("worker1") >> Dense(2))
            g.materialize(X).train().make_optimizer(SGD, lr=0.1)
            step(g)
            state = g.state()
            frozen = g.freeze().state()
            g.save(path)
            g.train()
            step(g)
            expected = list(weights(g).values())
        loaded = Graph.load(path, classes=[Dense]).state()
        with processes.worker(folder):
            for kept in (state, frozen, loaded):
                g.load_state(kept).train()
                step(g)
                assert all(map(torch.equal, weights(g).values(), expected))


def test_a_script_without_a_guard_is_told_of(tmp_path: Path) -> None:
    """A worker runs a script for its classes; one that asks for workers again ends in an error."""
    script = tmp_path / "bare.py"
    script.write_text(
        "from soma.distributed import local_cluster\nwith local_cluster(1): print('connected')\n"
    )
    with processes.running([sys.executable, str(script)]) as process:
        said, wrong = process.communicate(timeout=90)

    assert process.returncode == 1
    assert "connected" not in said
    assert 'below `if __name__ == "__main__":`' in wrong


def test_the_end_of_a_program_is_quiet(folder: Path) -> None:
    """Nothing is logged of workers that are let go, and what others write comes through."""
    code = """
import os
from soma.distributed import connect, disconnect
connect("worker1")
disconnect()
os.write(2, b"told")
"""
    with processes.worker(folder) as worker, processes.client(code, folder) as client:
        assert client.communicate(timeout=60)[1] == "told"
        processes.until(lambda: not processes.children(worker.pid), seconds=10)


def test_a_forked_program_leaves_its_parent_alone(folder: Path) -> None:
    """The child is told that it has no workers, and its end is not that of the session."""
    code = """
import os
from soma.distributed import disconnect
from soma.errors import WorkerUnavailable
from tests.distributed.test_faults import *
g = Graph.somatize(Dense(2).at("client")).materialize(X).train()
g.make_optimizer(SGD, lr=0.1)
step(g)
child = os.fork()
if not child:
    try:
        step(g)
    except WorkerLost as error:
        print(error, flush=True)
    disconnect()
    try:
        Graph.somatize(Dense(2).at("client")).materialize(X)
    except WorkerUnavailable as error:
        print(error, flush=True)
    os._exit(0)  # as multiprocessing does: torch's own threads are waited for else, in vain
os.waitpid(child, 0)
time.sleep(2)
step(g)
print("the parent stepped")
"""
    with processes.worker(folder, "client"), processes.client(code, folder) as client:
        told, wrong = client.communicate(timeout=90)

    assert "this process was forked" in told, wrong
    assert "this process is in a group of torch's RPC already" in told, wrong
    assert "the parent stepped" in told, wrong
