"""What happens in a step of a training: from hooks to the numbers of the step."""

__all__: list[str] = []
