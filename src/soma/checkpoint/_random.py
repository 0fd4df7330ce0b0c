"""Where the global random generators stand, as data."""

import random
from typing import Any

from soma._extras import loaded, require


def random_state() -> dict[str, object]:
    """Return where the generators of Python, and of NumPy and torch where they are used, stand."""
    state: dict[str, object] = {"python": random.getstate()}
    if (numpy := loaded("numpy")) is not None:
        state["numpy"] = numpy.random.get_state(legacy=False)
    if (torch := loaded("torch")) is not None:
        state["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore_random(state: Any) -> None:
    """Put the generators to where they stood.

    Raises:
        Exception: this is no such state.
    """
    if "numpy" in state:
        require("numpy", extra="torch").random.set_state(state["numpy"])
    if "torch" in state:
        torch = require("torch", extra="torch")
        torch.set_rng_state(state["torch"])
        if "cuda" in state and torch.cuda.is_available():
            here = state["cuda"][: torch.cuda.device_count()]
            for number, one in enumerate(here):
                torch.cuda.set_rng_state(one, number)
    random.setstate(state["python"])
