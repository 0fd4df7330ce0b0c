"""The pages run: README, `docs/` and the docstrings of `src/`, each snippet as a test.

In Markdown, fenced `python` blocks are run and the `>>>` lines in them compared; in
docstrings, plain `>>>` lines too. `<!-- skip: next -->` above a block leaves it out.
"""

from collections.abc import Iterator

import pytest
from sybil import Sybil
from sybil.integration.pytest import SybilItem
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser


def _as_script(namespace: dict[str, object]) -> None:
    """Let the classes that a page defines be a user's own, as in a script."""
    namespace["__name__"] = "__main__"


_pages = Sybil(
    pattern="*.md",
    parsers=[PythonCodeBlockParser(), SkipParser()],
    setup=_as_script,
    fixtures=["empty_desk"],
)
_docstrings = Sybil(
    path="src",
    pattern="*.py",
    parsers=[DocTestParser(), PythonCodeBlockParser(), SkipParser()],
    fixtures=["empty_desk"],
)

pytest_collect_file = (_pages + _docstrings).pytest()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the snippets of a page back in reading order; only tests run in random order."""
    snippets = [item for item in items if isinstance(item, SybilItem)]
    snippets.sort(key=lambda item: (item.path, item.example.region.start))
    items[:] = [item for item in items if not isinstance(item, SybilItem)] + snippets


@pytest.fixture(scope="module")
def empty_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run a page in an empty folder and with an empty cache, not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        desk = tmp_path_factory.mktemp("desk")
        patch.chdir(desk)
        patch.setenv("SOMA_CACHE_DIR", str(desk / "cache"))
        yield
