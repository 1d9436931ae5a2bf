"""Where benchmarks keep what they fetch: a folder outside the repository."""

import os
from pathlib import Path

VARIABLE = "DPLINEAR_BENCHMARK_CACHE"


def folder(name: str) -> Path:
    """Return a folder of the cache, made where it is missing.

    The environment variable DPLINEAR_BENCHMARK_CACHE names the cache; otherwise it is in the
    user's own cache folder.
    """
    given = os.environ.get(VARIABLE)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = (Path(given) if given else base / "dplinear-benchmarks") / name
    found.mkdir(parents=True, exist_ok=True)
    return found
