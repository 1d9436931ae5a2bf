"""Optional libraries and services: loud where they are missing."""

import os
import sys
from typing import Any, NoReturn

import pytest


def lacking(what: str, remedy: str) -> NoReturn:
    """Skip where a service is missing; fail where it was promised, that is, in CI."""
    message = f"NOT TESTED: {what} is missing. {remedy}"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def library(name: str) -> Any:
    """Import an optional library, or say loudly what is not tested without it."""
    try:
        __import__(name)
    except ImportError:
        lacking(name, "Run make setup.")
    return sys.modules[name]
