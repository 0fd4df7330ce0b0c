"""Settings of the process that change what torch computes, as a part of every key."""

from soma._extras import loaded


def ambient() -> str | None:
    """Return what differs from torch's own settings; None where nothing does."""
    torch = loaded("torch")
    if torch is None:
        return None
    told = []
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            told.append(f"autocast {device} {torch.get_autocast_dtype(device)}")
    if torch.get_default_dtype() is not torch.float32:
        told.append(str(torch.get_default_dtype()))
    if torch.get_float32_matmul_precision() != "highest":
        told.append(torch.get_float32_matmul_precision())
    return ", ".join(told) or None
