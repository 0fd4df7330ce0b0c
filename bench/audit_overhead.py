"""A training step under audit over the same step without, and over other ways to look at it.

Prints, for each model, the median ratio of interleaved rounds with its bootstrapped 95 %
interval, and the ratio of minima. One torch thread. Others: a hook that reads `.item()` at each
module, and TensorBoard histograms of weights and gradients where it is installed.
"""

import argparse
import gc
import importlib.util
import tempfile
import time
from contextlib import ExitStack

import torch
from measure import Ratio, ratio, ratios, verdict
from torch import nn
from torch.nn import functional as F

import soma

torch.set_num_threads(1)


def mlp():
    layers = [nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(8)]
    return layers, torch.randn(64, 512), torch.randn(64, 512)


def cnn():
    def block(before, after):
        return nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()
        )

    blocks = [block(3, 32), block(32, 32), nn.MaxPool2d(2), block(32, 64), block(64, 64)]
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return [*blocks, head], torch.randn(32, 3, 32, 32), torch.randn(32, 10)


def transformer():
    layers = [
        nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0) for _ in range(4)
    ]
    return layers, torch.randn(16, 64, 128), torch.randn(16, 64, 128)


MODELS = {"MLP 8x512": mlp, "CNN": cnn, "transformer": transformer}


class Loop:
    """The same modules and optimizer, with or without somebody watching."""

    def __init__(self, make) -> None:
        torch.manual_seed(0)
        modules, self.x, self.y = make()
        self.modules = nn.ModuleDict({f"m{at}": one for at, one in enumerate(modules)})
        self.optimizer = torch.optim.Adam(self.modules.parameters(), lr=1e-4)

    def step(self) -> None:
        self.optimizer.zero_grad()
        out = self.x
        for module in self.modules.values():
            out = module(out)
        F.mse_loss(out, self.y).backward()
        self.optimizer.step()


def under(make, **options) -> Ratio:
    """Return the cost of an audit that measures every step whole."""
    watched, bare = Loop(make), Loop(make)
    with soma.audit_modules(dict(watched.modules.items()), watched.optimizer, **options):
        gc.collect()
        return ratio(watched.step, bare.step)


def within_budget(make, **options) -> Ratio:
    """Return the cost of an audit once it has settled how often a step is whole.

    A round has one whole step and those up to the next: a median over single steps would never
    see a whole one.
    """
    watched, bare = Loop(make), Loop(make)
    named = dict(watched.modules.items())
    with soma.audit_modules(named, watched.optimizer, **options) as audit:
        for _ in range(SETTLED):
            watched.step()
        every = min(audit.measurements.every, SETTLED // 8)
        gc.collect()
        return ratio(lambda: times(every, watched), lambda: times(every, bare), round_seconds=0)


def times(count: int, loop: Loop) -> None:
    for _ in range(count):
        loop.step()


def first_steps(make, **options) -> float:
    """Return the cost of the first 100 steps together, over 100 steps without an audit."""
    watched, bare = Loop(make), Loop(make)
    for loop in (Loop(make), bare):  # what torch does once in a process
        times(3, loop)
    seconds = [0.0, 0.0]
    with soma.audit_modules(dict(watched.modules.items()), watched.optimizer, **options):
        for _ in range(100):
            for at, loop in enumerate((watched, bare)):
                began = time.perf_counter()
                loop.step()
                seconds[at] += time.perf_counter() - began
    return seconds[0] / seconds[1]


def watch_only(make) -> Ratio:
    """Return the cost of a step that is not whole: gradient norms and a look for NaN."""
    watched, bare = Loop(make), Loop(make)
    with soma.audit_modules(dict(watched.modules.items()), watched.optimizer, budget=1e-9):
        times(SETTLED, watched)  # whole steps are more than 16 apart, and a round is shorter
        gc.collect()
        return ratio(watched.step, bare.step)


def naive(make) -> Ratio:
    """Return the cost of hooks as they are found in forums."""
    watched, bare = Loop(make), Loop(make)
    seen: list[float] = []

    def after(module, given, output):
        seen.extend([output.mean().item(), output.std().item(), output.abs().max().item()])
        output.register_hook(lambda gradient: seen.append(gradient.norm().item()))

    def step() -> None:
        watched.step()
        for one in watched.modules.parameters():
            seen.extend([one.norm().item(), one.grad.norm().item()])
        seen.clear()

    with ExitStack() as stack:
        for module in watched.modules.values():
            stack.callback(module.register_forward_hook(after).remove)
        return ratios([step], bare.step)[0]


def histograms(make) -> Ratio:
    """Return the cost of TensorBoard histograms of every weight and gradient."""
    from torch.utils.tensorboard import SummaryWriter

    watched, bare = Loop(make), Loop(make)
    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:

        def step() -> None:
            watched.step()
            for name, one in watched.modules.named_parameters():
                writer.add_histogram(name, one, 0)
                writer.add_histogram(f"{name}.grad", one.grad, 0)

        return ratio(step, bare.step)


SETTLED = 136  # steps after which `every` is not fixed anew, and whole steps are that far apart

NODE = {"MLP 8x512": 1.15, "CNN": 1.05, "transformer": 1.08}
MORE = {"MLP 8x512": 1.25, "CNN": 1.15, "transformer": 1.15}
ROWS = {
    "node": ("every node, every step", {"budget": None}, NODE),
    "inside": ("every submodule", {"budget": None, "inside": True}, MORE),
    "channels": ("nodes with channels", {"budget": None, "channels": True}, MORE),
}
DEFAULT = {"inside": True, "channels": True}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    known = [*ROWS, "budget", "first", "watch", "naive", "histograms"]
    parser.add_argument("rows", nargs="*", help=", ".join(known))
    asked = parser.parse_args().rows
    for row, (title, options, target) in ROWS.items():
        if asked and row not in asked:
            continue
        print(f"audit, {title}, over the plain step")
        for name, make in MODELS.items():
            print(f"  {name:12} {verdict(under(make, **options), target[name])}", flush=True)
    if not asked or "budget" in asked:
        print("audit, default budget, once settled, over the plain step")
        for name, make in MODELS.items():
            print(f"  {name:12} {verdict(within_budget(make, **DEFAULT), 1.05)}", flush=True)
    if not asked or "first" in asked:
        print("audit, default budget, the first 100 steps together")
        for name, make in MODELS.items():
            print(f"  {name:12} {first_steps(make, **DEFAULT):6.3f}", flush=True)
    others = {"watch": (watch_only, 1.03), "naive": (naive, None)}
    if importlib.util.find_spec("tensorboard"):
        others["histograms"] = (histograms, None)
    for row, (run, target) in others.items():
        if asked and row not in asked:
            continue
        print(f"{run.__doc__.strip().rstrip('.').removeprefix('Return the cost of ')}")
        for name, make in MODELS.items():
            found = run(make)
            text = verdict(found, target) if target else f"{found.median:6.3f}"
            print(f"  {name:12} {text}")


if __name__ == "__main__":
    main()
