"""The list of all sources; importing this module enters each of them."""

from . import hold_engines, hold_estimators, hold_scipy
from .holders import SOURCES, Source

_ENTERED = (hold_engines, hold_estimators, hold_scipy)


def sources() -> dict[str, Source]:
    """Return every source by its name."""
    assert _ENTERED
    return SOURCES
