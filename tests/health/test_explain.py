"""Explanations of flags."""

import re
from pathlib import Path

import pytest

import soma
from soma.errors import UnknownFlag
from soma.health import Thresholds, explain, flags
from soma.health._severity import ERRORS, NEUTRAL, WORST_FIRST

ROOM = Path(soma.__file__).parent / "health"


@pytest.mark.parametrize("flag", flags())
def test_every_flag_is_told_in_full(flag: str) -> None:
    """What is measured, the rule, its source and what helps, within 100 columns."""
    told = explain(flag)
    text = str(told)

    assert all((told.title, told.measured, told.rule, told.source, told.helps))
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("flag", flags())
def test_thresholds_named_in_a_rule_exist(flag: str) -> None:
    """The defaults that are shown are the ones that are used."""
    told = explain(flag)

    assert told.defaults == {name: getattr(Thresholds(), name) for name in told.thresholds}
    assert set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", told.rule)) <= set(told.thresholds)


def test_every_flag_has_a_place_among_the_others() -> None:
    """All flags that are explained are ranked by how bad they are, and no others."""
    assert sorted(WORST_FIRST) == sorted(flags())
    assert set(flags()) >= ERRORS | NEUTRAL


def test_every_threshold_belongs_to_a_flag() -> None:
    """No threshold is left that nobody explains."""
    named = {name for flag in flags() for name in explain(flag).thresholds}

    assert named == set(Thresholds.__slots__)


def test_the_number_in_brackets_does_not_matter() -> None:
    """`soma.explain` takes a flag as a report shows it."""
    assert soma.explain("dead_channels(4)") == explain("DEAD_CHANNELS")


def test_an_unknown_flag_names_the_nearest() -> None:
    """A slip is told of."""
    with pytest.raises(UnknownFlag, match="Did you mean `VANISHING`"):
        explain("VANISHNG")
