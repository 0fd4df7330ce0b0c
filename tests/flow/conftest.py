"""What tests of models share: a server on loopback."""

from collections.abc import Iterator

import pytest

from tests.flow.server import ChatServer, serving


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """Serve `/v1/chat/completions` on loopback, past any proxy of the machine."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving() as chat:
        yield chat
