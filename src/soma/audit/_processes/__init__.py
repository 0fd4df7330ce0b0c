"""Modules and ranks in other processes."""

__all__: list[str] = []
