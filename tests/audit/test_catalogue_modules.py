"""Modules of all kinds (catalogue 11, 12, 20, 28, 31-33, 38, 49, 50)."""

import copy
import io
import pickle  # noqa: TID251

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.utils.flop_counter import FlopCounterMode

import soma
from tests.audit.loops import X, hook_tables, laws, plain_step, values


def three_layers() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


def test_a_compiled_module() -> None:
    """Row 11: a module compiled before the audit is measured as a whole; its parts say why not."""

    def make():
        model = torch.compile(three_layers(), backend="eager")
        model(X)
        return model

    audit = laws(make)

    units = audit.measurements.units
    assert list(units) == ["m", "m/0", "m/1", "m/2"]
    assert [units[one].unobserved for one in units] == [None, *["compiled"] * 3]
    assert all(values(audit, "m", "out_grad_norm"))
    assert all(values(audit, "m/0", "param_grad_norm"))


def test_compiled_in_place() -> None:
    """Row 11: a module that was compiled by its own `compile` says so."""

    def make():
        model = three_layers()
        model.compile(backend="eager")
        return model

    audit = laws(make)

    assert {one.unobserved for one in audit.measurements.units.values()} == {"compiled"}
    assert all(values(audit, "m", "param_grad_norm"))


def test_compiled_inside_the_audit() -> None:
    """Row 12: a module that is compiled with hooks on trains as ever, and is not called healthy."""

    def step(model, optimizer, x):
        optimizer.zero_grad()
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        compiled(x).square().mean().backward()
        optimizer.step()

    audit = laws(three_layers, step=step)

    assert audit.measurements.units["m/0"].unobserved
    assert all(values(audit, "m/0", "param_grad_norm"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:You are using the legacy")
@pytest.mark.parametrize("how", ["jit", "make_fx", "onnx"])
def test_traced_inside_the_audit(how: str) -> None:
    """Row 12: what is traced with hooks on is the module alone, and the audit goes on."""

    def trace(model: nn.Module) -> list[str]:
        if how == "jit":  # compares two traces, which have to be the same
            return [one.kind() for one in torch.jit.trace(model, X).inlined_graph.nodes()]
        if how == "make_fx":
            return [str(one.target) for one in make_fx(model)(X).graph.nodes]
        file = io.BytesIO()
        torch.onnx.export(model, (X,), file, dynamo=False)
        return [str(len(file.getvalue()))]

    model = three_layers()
    wanted = trace(model)
    with soma.audit_modules({"m": model}, inside=True) as audit:
        plain_step(model, torch.optim.SGD(model.parameters(), lr=0.1), X)
        found = trace(model)

    assert found == wanted
    assert not audit.measurements.notes


def test_operations_of_the_audit_are_not_counted() -> None:
    """Who counts or changes operations by a dispatch mode gets those of the training alone."""

    def counted(model: nn.Module) -> int:
        with FlopCounterMode(display=False) as counter:
            model(X).square().mean().backward()
        return counter.get_total_flops()

    model = three_layers()
    wanted = counted(model)
    with soma.audit_modules({"m": model}, inside=True, channels=True) as audit:
        found = counted(model)
        torch.optim.SGD(model.parameters(), lr=0.1).step()

    assert found == wanted
    assert values(audit, "m/0", "out_grad_norm")


def test_parallel_names() -> None:
    """Row 28: a wrapped module has the names that it has unwrapped."""
    model = nn.DataParallel(three_layers())
    with soma.audit_modules({"m": model}, inside=True) as audit:
        model(X).sum().backward()
    assert list(audit.measurements.units) == ["m", "m/0", "m/1", "m/2"]
    assert values(audit, "m/0", "out_grad_norm")


def test_the_fused_path_of_inference() -> None:
    """Row 31: in inference no hook is inside a transformer layer, so that its fused kernel runs."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
            self.body, self.head = nn.Sequential(layer), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.body(x.reshape(4, 4, 4)))

    def step(model, optimizer, x):
        model.train()
        plain_step(model, optimizer, x)
        model.eval()
        with torch.no_grad():
            model(x)
        assert not any(one._forward_hooks for one in model.body[0].modules())

    audit = laws(Model, step=step)

    assert all(values(audit, "m/body.0.linear1", "out_grad_norm"))
    assert audit.measurements.units["m/body.0.self_attn.out_proj"].unobserved


def test_lazy_modules() -> None:
    """Row 32: a module that learns its shape in its first forward is measured from then on."""

    def step(model, optimizer, x):
        model.zero_grad()
        model(x).square().mean().backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()

    model = nn.Sequential(nn.LazyLinear(4), nn.Tanh(), nn.LazyLinear(2))
    with soma.audit_modules({"m": model}, inside=True) as audit:
        for _ in range(3):
            step(model, None, X)
    assert len(audit.measurements.steps) == 3
    assert all(values(audit, "m/0", "out_grad_norm"))
    assert values(audit, "m", "grads") == [1.0] * 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_script_modules() -> None:
    """Row 33: of a scripted module the parameters are measured, the rest says why not."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.script, self.head = torch.jit.script(nn.Linear(4, 4)), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.script(x))

    audit = laws(Model)

    assert audit.measurements.units["m/script"].unobserved == "script"
    assert all(values(audit, "m/script", "param_grad_norm"))


def test_copies_made_inside() -> None:
    """Row 38: copies of an audited module can be made, are silent, and save and load."""
    model = three_layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with soma.audit_modules({"m": model}, inside=True) as audit:
        plain_step(model, optimizer, X)
        average = copy.deepcopy(model)
        again = pickle.loads(pickle.dumps(model))
        torch.save(model, io.BytesIO())  # noqa: TID251
        for one in (average, again):
            one(X).sum().backward()
        plain_step(model, optimizer, X)
    assert len(audit.measurements.steps) == 2
    assert values(audit, "m", "calls") == [1.0, 1.0]


@pytest.mark.parametrize("normed", [weight_norm, spectral_norm])
def test_parametrised_weights(normed) -> None:
    """Row 49: the originals of a normed weight are what is counted."""
    audit = laws(lambda: nn.Sequential(normed(nn.Linear(4, 4)), nn.Tanh(), nn.Linear(4, 2)))

    assert all(values(audit, "m/0", "param_grad_norm"))
    assert values(audit, "m/0", "moved") == [1.0] * 3


def test_nested_audits_and_hooks_of_others() -> None:
    """Row 50: an audit inside another is right, and the user's own hooks stay."""
    model = three_layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model[0].register_forward_hook(lambda *_: None)
    model[0].weight.register_post_accumulate_grad_hook(lambda _: None)
    before = hook_tables(model, optimizer)
    with soma.audit_modules({"m": model}) as outer:
        plain_step(model, optimizer, X)
        with soma.audit_modules({"m": model}, inside=True) as inner:
            plain_step(model, optimizer, X)
        plain_step(model, optimizer, X)
    assert (len(outer.measurements.steps), len(inner.measurements.steps)) == (3, 1)
    assert hook_tables(model, optimizer) == before
    for name in ("act_norm", "out_grad_norm", "param_grad_norm", "update_norm"):
        assert values(inner, "m", name)[0] == values(outer, "m", name)[1]


def test_modules_shared_by_two_names() -> None:
    """Row 20: a module in two places is measured at each of them by its own calls."""
    shared = nn.Linear(4, 4)
    first, second = nn.Sequential(shared, nn.Tanh()), nn.Sequential(shared, nn.ReLU())
    with soma.audit_modules({"first": first, "second": second}, inside=True) as audit:
        second(first(X)).sum().backward()
    norms = [values(audit, f"{name}/0", "out_grad_norm")[0] for name in ("first", "second")]
    assert norms[0] != norms[1]
    assert values(audit, "first/0", "calls") == values(audit, "second/0", "calls") == [1.0]


@pytest.mark.parametrize("compiles", [False, True])
def test_modules_that_come_later(*, compiles: bool) -> None:
    """A module put in the place of another is not measured, and not called healthy."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with soma.audit_modules({"m": net}, optimizer, inside=True) as audit:
        for step in range(4):
            if step == 2:
                net[0] = torch.compile(net[0], backend="eager") if compiles else nn.Linear(4, 4)
            plain_step(net, optimizer, X)
    row = audit.report().by_id()["m/0"]
    assert ("UNOBSERVED(replaced)" in row.flags) is not compiles
    assert [one for one in audit.measurements.notes if "not measured: `0`" in one] == (
        [] if compiles else ["put into `m` after the audit began, and not measured: `0`"]
    )


@pytest.mark.parametrize("given", [[nn.Linear(4, 4)], three_layers().children(), None, {"m": 3}])
def test_modules_without_names(given: object) -> None:
    """What is not modules by name is refused, with a way to write it."""
    wanted = r"model\.named_children\(\)"
    with pytest.raises(TypeError, match=wanted), soma.audit_modules(given):
        pass
