"""dplinear: differentially private linear learning.

One rule: a mechanism maps (statistics of bounded rows, a guarantee) to a release, and nothing else
crosses the wall between those who hold a table and those who analyse what was published.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev0"

# Loaded when first asked for, so that importing dplinear opens no room that is not needed.
_EXPORTS = {
    "PrivateLasso": "dplinear.estimators",
    "PrivateLinearRegression": "dplinear.estimators",
    "PrivateLogisticRegression": "dplinear.estimators",
    "PrivatePCA": "dplinear.estimators",
    "PrivateRidge": "dplinear.estimators",
    "ReleaseError": "dplinear.analyst.files",
    "Schema": "dplinear.schema",
    "forecast": "dplinear.planner",
    "load": "dplinear.analyst.files",
    "release_model": "dplinear.curator",
    "release_moments": "dplinear.curator",
    "release_sketch": "dplinear.curator",
    "tally": "dplinear.ledger",
}
__all__ = [
    "PrivateLasso",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivatePCA",
    "PrivateRidge",
    "ReleaseError",
    "Schema",
    "__version__",
    "forecast",
    "load",
    "release_model",
    "release_moments",
    "release_sketch",
    "tally",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'dplinear' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
