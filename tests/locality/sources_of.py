"""Tables of each library, without engines: what estimators and engines are given, too."""

from . import (
    hold_arrow,
    hold_databases,
    hold_duckdb,
    hold_files,
    hold_numpy,
    hold_pandas,
    hold_polars,
)
from .holders import SOURCES, Source

_ENTERED = (
    hold_arrow,
    hold_databases,
    hold_duckdb,
    hold_files,
    hold_numpy,
    hold_pandas,
    hold_polars,
)


def tables() -> dict[str, Source]:
    """Return the sources that the modules above entered."""
    assert _ENTERED
    return SOURCES
