"""Tensors that are not plain numbers (catalogue 21-23, 29, 45, 46)."""

import sys

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import soma
from soma.audit._measure._tensors import plain
from tests.audit.loops import X, laws, values
from tests.processes import started


def test_sparse_gradients() -> None:
    """Row 21: gradients of a sparse embedding count rows that came twice together."""

    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(10, 4, sparse=True), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.table((x[:, 0] > 0).long()))

    audit = laws(Rows)

    torch.manual_seed(0)
    model = Rows()
    model(X).square().mean().backward()
    truth = float(model.table.weight.grad.to_dense().norm())
    assert values(audit, "m/table", "param_grad_norm")[0] == pytest.approx(truth, rel=1e-5)
    assert all(values(audit, "m/table", "moved"))


def test_complex_parameters() -> None:
    """Row 22: a complex number counts with its modulus."""

    class Turn(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([1j, 2j, 3j, 4j]))

        def forward(self, x):
            return x * self.weight

    audit = laws(Turn)

    model = Turn()
    model(X).abs().square().mean().backward()
    truth = float(model.weight.grad.abs().norm())
    assert values(audit, "m", "param_norm")[0] == pytest.approx(30**0.5, rel=1e-5)
    assert values(audit, "m", "param_grad_norm")[0] == pytest.approx(truth, rel=1e-5)
    assert values(audit, "m", "update_norm")[0] == pytest.approx(truth * 0.05, rel=1e-4)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantised_tensors() -> None:
    """Row 23: a quantised output is measured by what it stands for, and has no gradient."""

    class Quantised(nn.Module):
        def forward(self, x):
            return torch.quantize_per_tensor(x.detach(), 0.1, 0, torch.qint8)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.quantised, self.head = Quantised(), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.quantised(x).dequantize())

    audit = laws(Model)

    assert values(audit, "m/quantised", "act_norm")[0] == pytest.approx(float(X.norm()), rel=0.05)
    assert values(audit, "m/quantised", "out_grad_norm") == []


@pytest.mark.parametrize("scale", [1e25, 1e-30])
def test_huge_and_tiny_numbers(scale: float) -> None:
    """Row 45: norms neither overflow nor vanish before their numbers do."""

    def step(model, optimizer, x):
        optimizer.zero_grad()
        (model(x).sum() * scale).backward()

    audit = laws(lambda: nn.Linear(4, 2), step=step, steps=1)

    assert values(audit, "m", "out_grad_norm") == pytest.approx([32**0.5 * scale], rel=1e-5)
    truth = float((X.sum(0).double().square().sum() * 2 + 2 * 16**2).sqrt()) * scale
    assert values(audit, "m", "param_grad_norm") == pytest.approx([truth], rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype: torch.dtype) -> None:
    """Row 45: sums of squares of 16-bit numbers do not overflow."""

    def step(model, optimizer, x):
        optimizer.zero_grad()
        model((x * 200).to(dtype)).float().square().mean().backward()
        optimizer.step()

    audit = laws(lambda: nn.Linear(4, 64).to(dtype), step=step, steps=1)

    torch.manual_seed(0)
    output = nn.Linear(4, 64).to(dtype)((X * 200).to(dtype)).detach()
    assert values(audit, "m", "act_norm")[0] == pytest.approx(
        float(output.double().norm()), rel=1e-3
    )


def test_tensors_without_numbers() -> None:
    """Row 46: meta and fake tensors hold nothing to measure."""
    with FakeTensorMode():
        fake = torch.ones(3)
    assert plain(fake) is None
    assert plain(torch.ones(3, device="meta")) is None


def test_a_module_on_meta() -> None:
    """Row 46: a forward on the meta device is called and not measured."""
    model = nn.Linear(4, 2, device="meta")
    with soma.audit_modules({"m": model}) as audit:
        model(X.to("meta")).sum().backward()
    assert audit.measurements.notes == []
    assert values(audit, "m", "act_norm") == []


SHARDED = """
import os, sys, torch, torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
import soma
rank = int(sys.argv[1])
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
whole = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
whole.load_state_dict(model.state_dict())
mesh = init_device_mesh("cpu", (2,))
fully_shard(model[0], mesh=mesh); fully_shard(model, mesh=mesh)
x = torch.randn(6, 4)
whole(x).square().mean().backward()
truth = torch.cat([one.grad.reshape(-1) for one in whole.parameters()]).norm().item()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with soma.audit_modules({"m": model}, inside=True) as audit:
    for _ in range(2):
        optimizer.zero_grad(); model(x).square().mean().backward(); optimizer.step()
series = audit.measurements.series["m"]
assert audit.measurements.notes == [], audit.measurements.notes
found = series["param_grad_norm"].values[0]
assert abs(found - truth) < 1e-5 * truth, (found, truth)
assert abs(series["update_norm"].values[0] - 0.1 * truth) < 1e-5 * truth
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.process
def test_sharded_parameters(tmp_path) -> None:
    """Row 29: norms of parameters that lie on two machines are those of the whole ones."""
    script = tmp_path / "sharded.py"
    script.write_text(SHARDED)
    command = [sys.executable, str(script)]
    with started([[*command, str(rank), str(tmp_path / "meeting")] for rank in range(2)]) as ranks:
        errors = [one.communicate(timeout=100)[1] for one in ranks]
        assert [one.returncode for one in ranks] == [0, 0], errors
