"""Where the run was started: versions, machine, commit and command."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from soma.viz.report._facts import Facts
from soma.viz.report._fill import fill
from soma.viz.report._section import Section

_LETTERS = 12  # of a commit


def surroundings_section(facts: Facts) -> Section | None:
    """Return what the manifest says of it; None where it says nothing."""
    rows = dict(_rows(facts.manifest.environment))
    if not rows:
        return None
    return Section(
        key="environment",
        title="Environment",
        body=fill("environment.jinja", rows=rows),
    )


def _rows(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Read with care: a manifest may come from anywhere."""
    git, libraries = environment.get("git"), environment.get("libraries")
    argv = environment.get("argv")
    if isinstance(git, Mapping):
        commit = str(git.get("commit") or "none")[:_LETTERS]
        changed = ", with changes that are not committed" if git.get("dirty") else ", clean"
        yield "commit", f"{commit} on {git.get('branch') or 'no branch'}{changed}"
    if isinstance(argv, list):
        yield "command", shlex.join(map(str, argv))
    for name in ("python", "platform"):
        if environment.get(name):
            yield name, str(environment[name])
    if isinstance(libraries, Mapping):
        for name, version in libraries.items():
            yield str(name), str(version or "not installed")
