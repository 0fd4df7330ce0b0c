"""A built module draws its parts."""

from xml.dom.minidom import parseString

import pytest
from torch import nn

from soma import DifferentiableFilter
from soma.training._module_picture import module_diagram


class Encoder(DifferentiableFilter):
    """Two branches beside a chain."""

    def build_module(self, input_shape):
        return nn.ModuleDict(
            {
                "branches": nn.ModuleDict({"<b>": nn.Linear(4, 4), "text": nn.Linear(4, 4)}),
                "trunk": nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Sequential(nn.Linear(8, 2))),
            }
        )


def test_a_filter_draws_itself_once_it_is_built() -> None:
    """Before, a notebook shows its `repr`; after, valid SVG without script."""
    encoder = Encoder()
    before = encoder._repr_html_()
    encoder.materialize((4,))
    shown = encoder._repr_html_()

    assert before is None
    assert parseString(shown).documentElement.tagName == "svg"
    assert "<script" not in shown
    assert "<b>" not in shown


def test_order_is_known_in_a_sequential_alone() -> None:
    """Arrows join what runs one after the other, into frames and out of them."""
    found = module_diagram("Encoder", Encoder().materialize((4,)))

    assert [(one.source, one.target) for one in found.arrows] == [
        ("trunk.0", "trunk.1"),
        ("trunk.1", "trunk.2.0"),
    ]
    assert [(one.key, one.parent) for one in found.groups] == [
        ("branches", None),
        ("trunk", None),
        ("trunk.2", "trunk"),
    ]


@pytest.mark.parametrize(
    "module", [nn.Identity(), nn.ModuleDict(), nn.Sequential(), nn.LazyLinear(3)]
)
def test_odd_modules_are_drawn(module: nn.Module) -> None:
    """Modules without parts, without parameters, or not yet initialised have a picture."""
    assert len(module_diagram("odd", module).boxes) == 1


def test_a_large_module_shows_its_outermost_parts() -> None:
    """A hundred layers in ten blocks are ten boxes."""
    blocks = nn.Sequential(
        *(nn.Sequential(*(nn.Linear(2, 2) for _ in range(10))) for _ in range(10))
    )

    assert len(module_diagram("deep", blocks).boxes) == 10
