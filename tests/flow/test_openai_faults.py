"""Every way in which a server fails, met by the real client over a real connection."""

import asyncio
import gzip
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable

import pytest

from soma.core import Message
from soma.errors import ModelError, ModelTimeout, ModelUnavailable
from soma.flow import OpenAIModel, Options
from tests.flow.server import (
    AT_ONCE,
    Answer,
    ChatServer,
    chunk,
    completion,
    cut,
    failing,
    flooding,
    silent,
    streamed,
    trickling,
    trickling_head,
    whole,
)

HELLO = (Message(role="user", text="hello"),)
KEY = "sk-secret-1234"


def model(server: ChatServer, **more: object) -> OpenAIModel:
    """Return a model of this server."""
    return OpenAIModel("small", base_url=server.url, api_key=KEY, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_busy_or_failing_server_is_asked_again(server: ChatServer, status: int) -> None:
    """After the wait that the server wants, the next try gets the reply."""
    trouble = failing(status, **AT_ONCE)
    server.answers = [trouble, trouble, whole(completion("There."))]

    assert model(server).complete(HELLO).text == "There."
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("answer", "kind", "told", "asked"),
    [
        (failing(429, "slow down", **AT_ONCE), ModelUnavailable, "after 3 tries: slow down.", 3),
        (failing(429, **AT_ONCE), ModelUnavailable, "(`Retry-After: 0.01`), or with fewer", 3),
        (
            failing(429, **{"Retry-After": "3600"}),
            ModelUnavailable,
            "after 1 try: it went wrong. Go on later (`Retry-After: 3600`)",
            1,
        ),
        (failing(500, "on fire", **AT_ONCE), ModelUnavailable, "500 in 3 tries: on fire.", 3),
        (failing(401, f"{KEY} is wrong"), ModelError, "refused the API key (401: *** is", 1),
        (failing(403), ModelError, "refused the API key (403", 1),
        (failing(404, "no such model"), ModelError, "does not know `small`", 1),
        (
            failing(400, "too long"),
            ModelError,
            "refused the request for `small` (400: too long)",
            1,
        ),
        (whole(b"<html>nginx</html>", status=400, kind="text/html"), ModelError, "nginx", 1),
        (whole(b"<html>Hi</html>", kind="text/html"), ModelError, "'<html>Hi</html>', which is", 1),
        (whole(b'{"choices": [{"mess'), ModelError, "is no chat completion", 1),
        (whole(b"[" * 3000 + b"]" * 3000), ModelError, "nested more than 100 deep", 1),
        (whole(b""), ModelError, "answered '', which is no chat", 1),
        (whole([1]), ModelError, "it is no object", 1),
        (whole({"object": "list"}), ModelError, "it has no list of `choices`", 1),
        (whole({"choices": [3]}), ModelError, "its first choice holds no message", 1),
        (whole({"error": {"message": "overloaded"}}), ModelUnavailable, "overloaded", 1),
    ],
)
def test_an_answer_that_is_none_is_told(
    server: ChatServer, answer: Answer, kind: type, told: str, asked: int
) -> None:
    """What the server said, what was wanted and what to do stand in the error."""
    server.answers = [answer] * 3
    with pytest.raises(ModelError) as failed:
        model(server).complete(HELLO)

    assert type(failed.value) is kind
    assert told in str(failed.value)
    assert len(server.asked) == asked


HALF = chunk({"role": "assistant", "content": "Once upon"})


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (streamed(HALF, done=False), ModelUnavailable, "the reply of `small` was whole"),
        (streamed(HALF), ModelUnavailable, "broke before the reply"),
        (streamed(), ModelUnavailable, "Ask again"),
        (cut(b"data: {}\n\n", kind="text/event-stream"), ModelError, "no list of `choices`"),
        (streamed(HALF, '{"choices": [{'), ModelError, "is no chat completion"),
        (streamed(HALF, "[3]"), ModelError, "[3]"),
        (streamed(HALF, '{"error": {"message": "out of memory"}}'), ModelUnavailable, "out of mem"),
    ],
)
def test_a_stream_that_breaks_is_told(
    server: ChatServer, answer: Answer, kind: type, told: str
) -> None:
    """A half reply is never taken for a whole one."""
    server.answers = [answer]
    with pytest.raises(ModelError) as failed:
        model(server, stream=True).complete(HELLO)

    assert type(failed.value) is kind
    assert told in str(failed.value)


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_connection_is_told(server: ChatServer, stream: bool) -> None:
    """A connection that closes before the promised length gives no reply."""
    half = b"data: " + b" " * 100 if stream else completion("Once upon a time")
    server.answers = [cut(half, kind="text/event-stream" if stream else "application/json")]

    with pytest.raises(ModelUnavailable, match="broke before the reply"):
        model(server, stream=stream, tries=1).complete(HELLO)


def test_a_server_that_is_not_there_is_told() -> None:
    """Where nobody listens, the address is told without what may be secret in it."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    gone = OpenAIModel("small", base_url=f"http://me:hidden@127.0.0.1:{port}/v1?k=1", tries=1)

    with pytest.raises(ModelUnavailable) as failed:
        gone.complete(HELLO)
    assert f"http://127.0.0.1:{port}/v1 cannot be reached" in str(failed.value)
    assert "in 1 try." in str(failed.value)
    assert "hidden" not in "".join(traceback.format_exception(failed.value))


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("answer", "stream"),
    [
        (silent, False),
        (trickling(b"{"), False),
        (trickling_head, False),
        (trickling(b"data: ", kind="text/event-stream"), True),
        (failing(429, **{"Retry-After": "60"}), False),
    ],
    ids=["silent", "trickling", "trickling head", "trickling stream", "told to wait"],
)
def test_a_slow_server_never_takes_more_than_the_time(
    server: ChatServer, answer: Answer, stream: bool
) -> None:
    """The limit holds for all tries together, and while bytes still come."""
    server.answers = [answer] * 3

    with pytest.raises(ModelTimeout, match=r"`small` at http://127.* within 0.4 s"):
        model(server, stream=stream).complete(HELLO, [], None, Options(seconds=0.4))
    assert len(server.asked) == 1


def test_no_time_is_no_request(server: ChatServer) -> None:
    """A call whose time is over before it begins asks nobody."""
    with pytest.raises(ModelTimeout, match="within 0 s"):
        model(server).complete(HELLO, [], None, Options(seconds=0))
    assert server.asked == []


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_server_that_echoes_the_key_tells_nobody(server: ChatServer, status: int) -> None:
    """Neither the error nor what stands behind it in its trace holds the key."""
    server.answers = [failing(status, f"the key {KEY} is odd")]
    with pytest.raises(ModelError) as failed:
        model(server, tries=1).complete(HELLO)

    assert "the key *** is odd" in str(failed.value)
    assert KEY not in "".join(traceback.format_exception(failed.value))


def test_no_thread_and_no_socket_stays(server: ChatServer) -> None:
    """After a reply and after a time that is over, nothing of the call is left."""
    before = threading.active_count()
    server.answers = [whole(completion("Hi.")), trickling(b"{")]
    model(server).complete(HELLO)
    with pytest.raises(ModelTimeout):
        model(server).complete(HELLO, [], None, Options(seconds=0.2))
    server.stopped.set()
    while threading.active_count() > before:  # the server's own end by themselves
        time.sleep(0.01)

    assert not any(thread.name == "soma-model" for thread in threading.enumerate())


def test_calls_side_by_side_do_not_meet(server: ChatServer) -> None:
    """One model may be asked from many threads."""
    server.answers = [whole(completion("Hi."))] * 8
    small, texts = model(server), []
    threads = [
        threading.Thread(target=lambda: texts.append(small.complete(HELLO).text)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert texts == ["Hi."] * 8


ASK = """
import sys
from soma.core import Message
from soma.flow import OpenAIModel
try:
    OpenAIModel("small", base_url=sys.argv[1]).complete([Message(role="user", text="hello")])
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("status", [200, 400])
def test_an_endless_answer_is_left(server: ChatServer, status: int) -> None:
    """No server fills the memory, with an error neither; it is not asked again."""
    server.answers = [flooding(status)]

    with pytest.raises(ModelError, match="has more than 67,108,864 bytes"):
        model(server).complete(HELLO)


def test_a_packed_answer_is_not_unpacked(server: ChatServer) -> None:
    """A few bytes do not become many: an answer is asked for as it is."""
    packed = gzip.compress(b"a" * 1_000_000)
    server.answers = [whole(packed, status=400, **{"Content-Encoding": "gzip"})]

    with pytest.raises(ModelError, match="is packed as 'gzip', and is not read"):
        model(server).complete(HELLO)
    assert server.asked[0].headers["Accept-Encoding"] == "identity"


def test_usage_is_a_number_that_a_journal_holds(server: ChatServer) -> None:
    """What no reader of JSON takes counts as the largest number that each takes."""
    said = completion("Hi.") | {"usage": {"prompt_tokens": 10**30, "completion_tokens": 1e300}}
    server.answers = [whole(said)]

    usage = model(server).complete(HELLO).usage

    assert (usage.input_tokens, usage.output_tokens) == (2**53, 2**53)


def test_ctrl_c_leaves_a_call_at_once(server: ChatServer) -> None:
    """A program that waits for a silent server can be interrupted, and ends."""
    came = threading.Event()

    def hang(handler: object) -> None:
        came.set()
        silent(handler)  # type: ignore[arg-type]

    server.answers = [hang]
    child = subprocess.Popen(
        [sys.executable, "-c", ASK, server.url], stdout=subprocess.PIPE, env=os.environ, text=True
    )
    assert came.wait(60)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=30)

    assert (out, child.returncode) == ("interrupted\n", 0)


async def _asked(ask: Callable[[], str]) -> str:
    return ask()


def test_a_running_loop_is_no_obstacle(server: ChatServer) -> None:
    """A notebook has a loop in its thread already, and a model can be asked there."""
    server.answers = [whole(completion("Hi."))]

    assert asyncio.run(_asked(lambda: model(server).complete(HELLO).text)) == "Hi."
