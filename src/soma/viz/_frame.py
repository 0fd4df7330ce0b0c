"""The metrics of a run as a data frame."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from soma._extras import loaded, require


def frame_of(columns: Mapping[str, Sequence[object]]) -> Any:
    """Return columns as a frame of the library that is in use, of pandas, or of Polars.

    Raises:
        MissingExtra: neither is installed.
    """
    in_use = [name for name in ("pandas", "polars") if loaded(name) is not None]
    installed = [name for name in ("pandas", "polars") if find_spec(name) is not None]
    library = require([*in_use, *installed, "pandas"][0], extra="frames")
    return library.DataFrame({name: list(values) for name, values in columns.items()})
