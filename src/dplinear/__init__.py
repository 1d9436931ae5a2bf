"""dplinear: differentially private linear learning.

One rule: a mechanism maps (statistics of bounded rows, a guarantee) to a release, and nothing else
crosses the wall between those who hold a table and those who analyse what was published.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dplinear.version import __version__

if TYPE_CHECKING:
    from dplinear.analyst.releases.files import ReleaseError, load
    from dplinear.analyst.releases.join import join
    from dplinear.analyst.releases.release import Release
    from dplinear.arguments import ArgumentError
    from dplinear.curator import (
        release_covariance,
        release_mean,
        release_model,
        release_moments,
        release_rows,
        release_scores,
        release_sketch,
        suggest_bounds,
        suggest_levels,
        suggest_rows_per_unit,
    )
    from dplinear.estimators import (
        PrivateConstrainedClassifier,
        PrivateConstrainedRegressor,
        PrivateCovariance,
        PrivateLasso,
        PrivateLinearRegression,
        PrivateLogisticRegression,
        PrivateMean,
        PrivatePCA,
        PrivateProjection,
        PrivateRidge,
        PrivateSVM,
    )
    from dplinear.ledger import BudgetExceededError, LedgerError, NotKeptWarning, open_ledger
    from dplinear.ledger.tally import tally
    from dplinear.planner.bits import compare_guarantees
    from dplinear.planner.compressed_forecast import forecast_compressed
    from dplinear.planner.forecast import forecast
    from dplinear.planner.plan import plan
    from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, PureDP
    from dplinear.privacy.neighbours import Neighbours
    from dplinear.registry import register
    from dplinear.schema import Schema

# Loaded when first asked for, so that importing dplinear opens no room that is not needed.
_EXPORTS = {
    "ArgumentError": "dplinear.arguments",
    "ApproxDP": "dplinear.privacy.guarantees",
    "BudgetExceededError": "dplinear.ledger",
    "GDP": "dplinear.privacy.guarantees",
    "LedgerError": "dplinear.ledger",
    "MIDP": "dplinear.privacy.guarantees",
    "Neighbours": "dplinear.privacy.neighbours",
    "NotKeptWarning": "dplinear.ledger",
    "PrivateConstrainedClassifier": "dplinear.estimators",
    "PrivateConstrainedRegressor": "dplinear.estimators",
    "PrivateCovariance": "dplinear.estimators",
    "PrivateLasso": "dplinear.estimators",
    "PrivateLinearRegression": "dplinear.estimators",
    "PrivateLogisticRegression": "dplinear.estimators",
    "PrivateMean": "dplinear.estimators",
    "PrivatePCA": "dplinear.estimators",
    "PrivateProjection": "dplinear.estimators",
    "PrivateRidge": "dplinear.estimators",
    "PrivateSVM": "dplinear.estimators",
    "PureDP": "dplinear.privacy.guarantees",
    "Release": "dplinear.analyst.releases.release",
    "ReleaseError": "dplinear.analyst.releases.files",
    "Schema": "dplinear.schema",
    "ZCDP": "dplinear.privacy.guarantees",
    "compare_guarantees": "dplinear.planner.bits",
    "forecast": "dplinear.planner.forecast",
    "forecast_compressed": "dplinear.planner.compressed_forecast",
    "join": "dplinear.analyst.releases.join",
    "load": "dplinear.analyst.releases.files",
    "open_ledger": "dplinear.ledger",
    "plan": "dplinear.planner.plan",
    "register": "dplinear.registry",
    "release_covariance": "dplinear.curator",
    "release_mean": "dplinear.curator",
    "release_model": "dplinear.curator",
    "release_moments": "dplinear.curator",
    "release_rows": "dplinear.curator",
    "release_scores": "dplinear.curator",
    "release_sketch": "dplinear.curator",
    "suggest_bounds": "dplinear.curator",
    "suggest_rows_per_unit": "dplinear.curator",
    "suggest_levels": "dplinear.curator",
    "tally": "dplinear.ledger.tally",
}
__all__ = [
    "GDP",
    "MIDP",
    "ZCDP",
    "ApproxDP",
    "ArgumentError",
    "BudgetExceededError",
    "LedgerError",
    "Neighbours",
    "NotKeptWarning",
    "PrivateConstrainedClassifier",
    "PrivateConstrainedRegressor",
    "PrivateCovariance",
    "PrivateLasso",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateMean",
    "PrivatePCA",
    "PrivateProjection",
    "PrivateRidge",
    "PrivateSVM",
    "PureDP",
    "Release",
    "ReleaseError",
    "Schema",
    "__version__",
    "compare_guarantees",
    "forecast",
    "forecast_compressed",
    "join",
    "load",
    "open_ledger",
    "plan",
    "register",
    "release_covariance",
    "release_mean",
    "release_model",
    "release_moments",
    "release_rows",
    "release_scores",
    "release_sketch",
    "suggest_bounds",
    "suggest_levels",
    "suggest_rows_per_unit",
    "tally",
]


if not TYPE_CHECKING:  # which would otherwise believe that any name is here

    def __getattr__(name: str) -> Any:
        if name in _EXPORTS:
            return getattr(import_module(_EXPORTS[name]), name)
        raise AttributeError(f"module 'dplinear' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
