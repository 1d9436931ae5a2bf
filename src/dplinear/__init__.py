"""dplinear: differentially private linear learning.

One rule: a mechanism maps (statistics of bounded rows, a guarantee) to a release, and nothing else
crosses the wall between those who hold a table and those who analyse what was published.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev1"

# Loaded when first asked for, so that importing dplinear opens no room that is not needed.
_EXPORTS = {
    "BudgetExceededError": "dplinear.ledger",
    "LedgerError": "dplinear.ledger",
    "NotKeptWarning": "dplinear.ledger",
    "PrivateCompressedClassifier": "dplinear.estimators",
    "PrivateCompressedRegressor": "dplinear.estimators",
    "PrivateCovariance": "dplinear.estimators",
    "PrivateLasso": "dplinear.estimators",
    "PrivateLinearRegression": "dplinear.estimators",
    "PrivateLogisticRegression": "dplinear.estimators",
    "PrivateMean": "dplinear.estimators",
    "PrivatePCA": "dplinear.estimators",
    "PrivateProjection": "dplinear.estimators",
    "PrivateRidge": "dplinear.estimators",
    "PrivateSVM": "dplinear.estimators",
    "ReleaseError": "dplinear.analyst.releases.files",
    "Schema": "dplinear.schema",
    "compare_guarantees": "dplinear.planner.bits",
    "forecast": "dplinear.planner",
    "forecast_compressed": "dplinear.planner.compressed_forecast",
    "load": "dplinear.analyst.releases.files",
    "open_ledger": "dplinear.ledger",
    "plan": "dplinear.planner.plan",
    "proj_erm": "dplinear.curator",
    "release_covariance": "dplinear.curator",
    "release_mean": "dplinear.curator",
    "release_model": "dplinear.curator",
    "release_moments": "dplinear.curator",
    "release_rows": "dplinear.curator",
    "release_sketch": "dplinear.curator",
    "std_erm": "dplinear.curator",
    "suggest_bounds": "dplinear.curator",
    "tally": "dplinear.ledger",
}
__all__ = [
    "BudgetExceededError",
    "LedgerError",
    "NotKeptWarning",
    "PrivateCompressedClassifier",
    "PrivateCompressedRegressor",
    "PrivateCovariance",
    "PrivateLasso",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateMean",
    "PrivatePCA",
    "PrivateProjection",
    "PrivateRidge",
    "PrivateSVM",
    "ReleaseError",
    "Schema",
    "__version__",
    "compare_guarantees",
    "forecast",
    "forecast_compressed",
    "load",
    "open_ledger",
    "plan",
    "proj_erm",
    "release_covariance",
    "release_mean",
    "release_model",
    "release_moments",
    "release_rows",
    "release_sketch",
    "std_erm",
    "suggest_bounds",
    "tally",
]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'dplinear' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
