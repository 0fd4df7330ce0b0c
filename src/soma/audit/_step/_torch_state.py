"""What torch is doing on this thread: whether a backward runs, whether tensors hold numbers."""

from collections.abc import Callable

import torch


def at_backward_end(function: Callable[[], None]) -> None:
    """Call a function when the backward that runs now is over."""
    torch.autograd.Variable._execution_engine.queue_callback(function)


def running_backward() -> int:
    """Return the id of the backward that runs on this thread; -1: none does.

    Torch calls it the id of a graph task.
    """
    return torch._C._current_graph_task_id()


def has_no_numbers() -> bool:
    """Whether tensors hold no numbers now, or operations are recorded to be run elsewhere.

    The former is so inside function transforms of `torch.func`, and in modes that work on tensors
    without numbers; the latter under `torch.jit.trace` and the ONNX exporter above it, which would
    record the audit's operations too.
    """
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return True
    if torch._C._get_tracing_state() is not None:
        return True
    if not torch._C._len_torch_dispatch_stack():
        return False
    kinds = torch._C._TorchDispatchModeKey
    return any(
        torch._C._get_dispatch_mode(kind) is not None
        for kind in (kinds.PROXY, kinds.FAKE, kinds.FUNCTIONAL)
    )
