"""Finds where the first number that is not finite was made, by running a step again."""

__all__: list[str] = []
