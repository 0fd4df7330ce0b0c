"""What stands for a request in the journal."""

from soma.flow._kept import digest


def test_a_part_without_a_digest_hides_no_other() -> None:
    """Beside a function, say, a change of all else is still seen."""
    odd = lambda: None  # noqa: E731 - the point is that it has no digest

    assert digest(odd) == digest(object()) == "unknown"
    assert digest([1, {"loss": odd, "epochs": 2}]) == digest([1, {"loss": odd, "epochs": 2}])
    assert digest([1, {"loss": odd, "epochs": 2}]) != digest([1, {"loss": odd, "epochs": 3}])
    assert digest([1, odd]) != digest([2, odd])
