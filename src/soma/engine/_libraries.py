"""Which libraries this process has loaded: the engine knows their values and imports none."""

import sys
from types import ModuleType


def loaded(module: str) -> ModuleType | None:
    """Return a library that has been imported to its end, without importing it.

    A node on another thread may be in the middle of its import; nothing of it is in use then.
    """
    found = sys.modules.get(module)
    return None if getattr(getattr(found, "__spec__", None), "_initializing", False) else found
