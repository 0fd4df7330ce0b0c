"""`ambient`: the settings of this process that change what torch computes; part of every key."""

from soma._extras import loaded


def ambient() -> str | None:
    """Return the settings that differ from torch's defaults; None if none does."""
    torch = loaded("torch")
    if torch is None:
        return None
    changed = []
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            changed.append(f"autocast {device} {torch.get_autocast_dtype(device)}")
    if torch.get_default_dtype() is not torch.float32:
        changed.append(str(torch.get_default_dtype()))
    if torch.get_float32_matmul_precision() != "highest":
        changed.append(torch.get_float32_matmul_precision())
    return ", ".join(changed) or None
