"""The modules of docs/, which mkdocs loads by their paths."""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


@cache
def hook(name: str) -> Any:
    """Return a module that mkdocs loads."""
    if str(DOCS) not in sys.path:
        sys.path.insert(0, str(DOCS))
    return import_module(name)
