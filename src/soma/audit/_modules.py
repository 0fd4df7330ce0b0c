"""`audit_modules`: an audit of any torch loop, with no call of ours inside it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from torch import nn

from soma.audit._audit import Audit
from soma.audit._replaced import mark_replaced
from soma.audit._scope import ChannelConfig, InsideByNode, channel_config, check_nodes
from soma.audit._step._budget import Budget
from soma.audit._step._recorder import Recorder
from soma.audit._watch import Watch
from soma.health import Thresholds
from soma.tracking import Run

Modules = nn.Module | Mapping[str, nn.Module] | Iterable[tuple[str, nn.Module]]


@contextmanager
def audit_modules(
    modules: Modules,
    optimizer: object = None,
    *,
    thresholds: "Thresholds | Mapping[str, float] | None" = None,
    inside: InsideByNode = False,
    channels: bool | ChannelConfig = False,
    budget: float | None = 0.05,
    run: Run | None = None,
) -> Iterator[Audit]:
    """Watch modules while they are trained inside a `with`.

    >>> import torch, soma
    >>> model = torch.nn.Linear(4, 2)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with soma.audit_modules({"model": model}) as audit:
    ...     for _ in range(3):
    ...         optimizer.zero_grad()
    ...         model(torch.randn(8, 4)).square().mean().backward()
    ...         optimizer.step()
    >>> audit.report().n_steps
    3

    Args:
        modules: by name, as a mapping or pairs; a single module goes by its class's name.
        optimizer: one or several; by default those that hold parameters of these modules are
            looked for, now and when the first gradients come.
        thresholds: other limits than the usual ones, by name.
        inside: which submodules are watched too: True, a depth, patterns, or these by name.
        channels: look at each channel of outputs.
        budget: the share of the time that later steps may cost; None measures every step whole.
        run: keeps the numbers and the flags in its directory, as `soma.track_run` gives it.
    """
    named = _named(modules)
    check_nodes(inside, named)
    recorder = Recorder(channel_config(channels), Budget(budget))
    audit = Audit(recorder, thresholds)
    with ExitStack() as stack:
        stack.callback(audit.end)
        stack.callback(recorder.close)
        stack.callback(mark_replaced, recorder)
        if run is not None:
            audit.keep_in(run)
        watch = Watch(recorder, inside, stack)
        for name, module in named.items():
            watch.add(name, module)
        if optimizer is None:
            watch.optimizers.search()
        watch.optimizers.follow(optimizer if isinstance(optimizer, Iterable) else [optimizer])
        try:
            yield audit
        except BaseException:
            recorder.close(halfway=True)
            raise


def _named(modules: Modules) -> dict[str, nn.Module]:
    if isinstance(modules, nn.Module):
        modules = {type(modules).__name__.lower(): modules}
    try:
        named = dict(modules)
    except (TypeError, ValueError):  # `model.children()`, or None
        raise _not_by_name(modules) from None
    for name, module in named.items():
        if not isinstance(name, str) or not isinstance(module, nn.Module):
            raise _not_by_name({name: module})
    return named


def _not_by_name(given: object) -> TypeError:
    return TypeError(
        f"`audit_modules` got {given!r:.200}; modules by name are wanted, as "
        '`{"encoder": encoder, "head": head}` or `model.named_children()`.'
    )
