"""Numbers of tensors: plain functions of one tensor each, on a CPU or on a device."""

__all__: list[str] = []
