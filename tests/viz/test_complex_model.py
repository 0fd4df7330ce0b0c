"""A model with four faults inside one node: all of them are found, and each view shows them."""

from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import soma
from soma import ChannelConfig, DifferentiableFilter, Graph
from soma.audit import Audit

WATCHED = ["eyes.*", "joint", "gate", "side", "deep.*"]
FAULTS = {
    "robot/joint": ["LEAKAGE"],
    "robot/gate": ["DEAD_CHANNELS(6)"],
    "robot/deep.0": ["VANISHING"],
    "robot/side": ["VANISHING", "IGNORED_CHANNELS(24)"],
}


class Robot(DifferentiableFilter):
    """Sees with two eyes that are copies, and has a deep part that lets hardly anything by."""

    def build_module(self, input_shape: tuple[int, ...]) -> nn.Module:
        """Build it with its faults."""
        eyes = nn.ModuleDict({
            side: nn.Sequential(nn.Linear(12, 12), nn.ReLU()) for side in ("left", "right")
        })  # fmt: skip
        eyes["right"].load_state_dict(eyes["left"].state_dict())
        gate = nn.Sequential(nn.Linear(24, 24), nn.ReLU())
        deep = nn.Sequential(*(layer for _ in range(5) for layer in (nn.Linear(24, 24), nn.Tanh())))
        with torch.no_grad():
            gate[0].bias[:6] = -9.0
            gate[0].bias[6:] = 0.5
            for layer in deep[::2]:
                layer.weight.mul_(0.3)
        return nn.ModuleDict({
            "eyes": eyes, "joint": nn.Identity(), "gate": gate, "deep": deep,
            "side": nn.Linear(24, 24), "hand": nn.Linear(24, 4),
        })  # fmt: skip

    def forward(self, x: object, state: object = None) -> tuple[object, dict[str, object]]:
        """Run it, from numbers of any kind."""
        given = x if isinstance(x, Tensor) else torch.as_tensor(np.asarray(x), dtype=torch.float32)
        self.materialize(tuple(given.shape[1:]))
        part = self._module
        seen = [part["eyes"]["left"](given[:, :12]), part["eyes"]["right"](given[:, 12:])]
        joint = part["joint"](torch.cat(seen, dim=1))
        deep = part["deep"](part["gate"](joint))
        out = part["hand"](deep + 0.0 * part["side"](joint))
        return (out if self.training else out.detach().tolist()), {}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Audit, soma.RunView]:
    """Train it for six steps, audited inside, in a run."""
    torch.manual_seed(3)
    left = torch.randn(80, 12)
    x, y = torch.cat([left, 0.98 * left + 0.04 * torch.randn(80, 12)], dim=1), torch.randn(80, 4)
    g = Graph()
    g.node("robot", Robot())
    g.materialize(x)
    g.train()
    g.make_optimizer(torch.optim.Adam, lr=1e-3)
    channels = ChannelConfig(
        snapshot_every=2,
        groups={"robot/joint": {"left": range(12), "right": range(12, 24)}},
    )
    with (
        g.track_run("four faults", root=tmp_path_factory.mktemp("runs")) as run,
        g.gradient_audit(inside={"robot": WATCHED}, channels=channels) as audit,
    ):
        for _ in range(6):
            with g.context() as ctx:
                g.zero_grad()
                out, _ = g.forward(x)
                g.backward(ctx, nn.functional.mse_loss(out, y))
            g.step(ctx)
    return audit, soma.RunView(run.dir)


def test_the_faults_are_found(trained: tuple[Audit, soma.RunView]) -> None:
    """Each of the four is reported where it is, at the thresholds that everybody has."""
    audit, view = trained
    found = {row.filter_id: row.flags for row in audit.report().filters if row.flags}

    assert found == FAULTS
    assert {row.filter_id: row.flags for row in view.verdict().filters if row.flags} == FAULTS


def test_the_node_tells_where_inside(trained: tuple[Audit, soma.RunView]) -> None:
    """The roll-up has a row for each flag, with the submodules that have it."""
    flags = [flag for flag in trained[1].health_flags() if flag["node_id"] == "robot"]

    assert [f"{flag['flag']} {flag['detail']}" for flag in flags] == [
        "DEAD_CHANNELS in: gate",
        "IGNORED_CHANNELS in: side",
        "LEAKAGE in: joint",
        "VANISHING in: deep.0, side",
    ]


def test_the_pictures_mark_them(trained: tuple[Audit, soma.RunView]) -> None:
    """The graph marks the node, and its inside each part with its own flags."""
    view = trained[1]

    assert "▲ LEAKAGE" in view.to_svg()
    for flag in ("DEAD_CHANNELS(6)", "IGNORED_CHANNELS(24)", "LEAKAGE", "VANISHING"):
        assert f"▲ {flag}" in view.to_svg(node="robot")


def test_the_figures(trained: tuple[Audit, soma.RunView]) -> None:
    """Each figure draws: what failed, the staircase, the channels, and how they change."""
    view = trained[1]
    figures = [
        view.plot_health(),
        view.plot_audit(),
        view.plot_module_flow("robot"),
        view.plot_channels("robot/joint"),
        view.plot_channels("robot/gate"),
        view.plot_channel_evolution("robot/joint"),
    ]

    for figure in figures:
        assert figure.chart.panels
        ElementTree.fromstring(figure.to_svg())


def test_the_staircase_goes_down(trained: tuple[Audit, soma.RunView]) -> None:
    """The deep part has a bar for each layer, shorter and shorter towards the input."""
    (panel,) = trained[1].plot_module_flow("robot").chart.panels
    bars = {panel.y.categories[one.lane]: one.end for group in panel.blocks for one in group.blocks}
    layers = [bars[f"deep.{number}"] for number in range(0, 10, 2)]

    assert layers == sorted(layers)
    assert layers[0] < 2e-3 < 0.1 < layers[-1]


def test_dead_channels_are_marked(trained: tuple[Audit, soma.RunView]) -> None:
    """The six that never fire have the sign, and no other has."""
    panel = trained[1].plot_channels("robot/gate").chart.panels[0]
    marked = [int(name.rstrip("†")) for name in panel.y.categories if "†" in name]

    assert set(range(6)) <= set(marked)
    assert panel.cells
    assert all(value != value for value in panel.cells.rows[0][1:])


def test_the_groups_are_one_thing(trained: tuple[Audit, soma.RunView]) -> None:
    """Over the training the eyes stay as alike as they began."""
    chart = trained[1].plot_channel_evolution("robot/joint").chart
    (likeness,) = [panel for panel in chart.panels if panel.title == "likeness of groups"]

    assert likeness.series[0].name == "left and right"
    assert min(likeness.series[0].y) > 0.95
