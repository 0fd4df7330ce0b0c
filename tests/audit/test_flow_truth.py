"""Traced flows against two independent truths: graphs made at random, and `torch.fx`."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import fx, nn

from tests.audit.flows import edges, flow_of

OPERATIONS = ("add", "cat", "mul")


@dataclass(frozen=True)
class Wiring:
    """Which value each step reads: a module reads one, an operation two."""

    steps: tuple[tuple[str, int, int], ...]


@st.composite
def wirings(draw: st.DrawFn) -> Wiring:
    steps = []
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(("module", "wrapped", "detach", *OPERATIONS)))
        earlier = st.integers(0, number)
        steps.append((kind, draw(earlier), draw(earlier)))
    return Wiring(tuple(steps))


class Wired(nn.Module):
    """Runs a wiring; `truth` are the edges that a reader of the wiring would draw."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__()
        self.wiring = wiring
        layer = {"module": nn.Linear(4, 4), "wrapped": nn.Sequential(nn.Linear(4, 4), nn.Tanh())}
        self.layers = nn.ModuleDict(
            {str(n): layer[kind] for n, (kind, *_) in enumerate(wiring.steps) if kind in layer}
        )

    def forward(self, x):
        values = [x]
        for number, (kind, left, right) in enumerate(self.wiring.steps):
            a, b = values[left], values[right]
            if kind in ("module", "wrapped"):
                values.append(self.layers[str(number)](a))
            elif kind == "detach":
                values.append(a.detach())
            elif kind == "cat":
                values.append(torch.cat([a, b], dim=0)[:4])
            else:
                values.append(getattr(torch, kind)(a, b))
        return tuple(values[1:])


def truth(wiring: Wiring) -> set[tuple[str, str, str | None]]:
    found = set()
    ends: list[tuple[str, str | None, bool]] = [("input", None, False)]  # name, cut, has gradient
    counts = dict.fromkeys((*OPERATIONS, "getitem"), 0)
    calls: dict[str, int] = {}
    first: dict[str, str] = {}
    for number, (kind, left, right) in enumerate(wiring.steps):
        a, b = ends[left], ends[right]
        if kind == "detach":
            ends.append((a[0], a[1] or ("detach" if a[2] else None), False))
            continue
        if kind in ("module", "wrapped"):
            root = first.setdefault(kind, f"layers.{number}")
            calls[kind] = calls.get(kind, 0) + 1
            time = "" if calls[kind] == 1 else f"#{calls[kind]}"
            inside = [root] if kind == "module" else [f"{root}.0", f"{root}.1"]
            names = [name + time for name in inside]
            found.add((a[0], names[0], a[1]))
            found |= {(one, other, None) for one, other in pairwise(names)}
            ends.append((names[-1], None, True))
            continue
        counts[kind] += 1
        name = f"{kind}_{counts[kind]}"
        found |= {(one[0], name, one[1]) for one in (a, b)}
        learns = a[2] or b[2]
        if kind == "cat":
            counts["getitem"] += 1
            found.add((name, f"getitem_{counts['getitem']}", None))
            name = f"getitem_{counts['getitem']}"
        ends.append((name, None, learns))
    return found | {(name, "output", cut) for name, cut, _ in ends[1:]}


@settings(max_examples=40, deadline=None)
@given(wirings())
def test_any_wiring_is_found(wiring: Wiring) -> None:
    """The traced edges are those of the wiring, cuts included."""
    assert edges(flow_of(Wired(wiring), torch.randn(4, 4))) == truth(wiring)


class Residual(nn.Module):
    """Something that `torch.fx` can follow too."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        self.gate = nn.Sequential(nn.Linear(6, 6), nn.Sigmoid())
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        for block in self.blocks:
            x = x + torch.relu(block(x)) * self.gate(x)
        return self.head(torch.cat([x, x.mean(0, keepdim=True).expand(4, 6)], dim=1))


def test_the_same_edges_as_fx() -> None:
    """Symbolic tracing finds the same graph, up to the names."""
    symbolic = fx.symbolic_trace(Residual()).graph
    theirs = [(source.name, user.name) for source in symbolic.nodes for user in source.users]
    ours = {(source, target) for source, target, _ in edges(flow_of(Residual()))}

    assert len(ours) == len(theirs)
    assert degrees(ours) == degrees(theirs)


def degrees(pairs) -> list[tuple[str, int, int]]:
    """Return kind, in-degree and out-degree of every node, in order."""
    names = {name for pair in pairs for name in pair}
    return sorted(
        (
            kind(name),
            sum(target == name for _, target in pairs),
            sum(source == name for source, _ in pairs),
        )
        for name in names
    )


def kind(name: str) -> str:
    """Return what a node is, in the words of neither."""
    if name in ("x", "input"):
        return "input"
    for word in ("relu", "add", "mul", "cat", "mean", "expand", "head", "output"):
        if name.startswith(word):
            return word
    return "block" if "block" in name else "gate"
