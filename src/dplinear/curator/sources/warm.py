"""What reading would import on its way, imported before anything is spent.

PyArrow looks for pandas when it first makes or reads an array, within code that drops whatever is
raised there: a Ctrl-C at that moment was lost, or left threads waiting for each other. An import by
name, here, raises it; and nothing is imported after the spend (tests/curator/test_interrupted.py).
"""

import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from dplinear.schema.libraries import library_of, unwrap

_LIBRARIES = {"dask": "distributed"}


def warm(data: Any = None, *, progress: bool | None = None) -> None:
    """Import what a pass over a table would import; what is not installed is not needed."""
    if isinstance(data, np.ndarray) or hasattr(data, "tocsr"):
        return  # without PyArrow, and so without what it looks for
    _look(_LIBRARIES.get(library_of(unwrap(data))))
    if progress or (progress is None and sys.stderr.isatty()):
        import_module("rich.progress")


@cache  # algorithms of several passes open their table again, after the spend
def _look(beside: str | None) -> None:
    for name in ("pandas", *([beside] if beside else [])):
        with suppress(Exception):  # whatever keeps it from being imported: it is not ours to use
            import_module(name)
    # Arrays and lists are read by two parts of it, each of which looks for itself.
    pa.array(np.zeros(1)).to_numpy()
    pa.array([0.0, None])
