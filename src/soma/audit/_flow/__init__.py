"""Finds what ran inside the module of a node, from traced turns."""

__all__: list[str] = []
