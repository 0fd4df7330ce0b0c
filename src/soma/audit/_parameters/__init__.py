"""What is measured of parameters: norms of values, of gradients and of changes."""

__all__: list[str] = []
