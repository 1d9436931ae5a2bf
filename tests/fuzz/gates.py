"""Every gate: each public function that opens a table or a file."""

from collections.abc import Callable

from . import learners, ledgers, releases, saved, schemas
from .cases import Case, Verdict, tried
from .dice import Dice

GATES: dict[str, Callable[[Dice], Case]] = {
    "release_moments": releases.moments,
    "release_sketch": releases.sketch,
    "release_rows": releases.rows,
    "release_model": releases.model,
    "release_mean": releases.mean,
    "release_covariance": releases.covariance,
    "suggest_bounds": releases.bounds,
    "suggest_rows_per_unit": releases.rows_per_unit,
    "suggest_levels": releases.levels,
    "release_model, constrained": learners.constrained,
    "release_model, projected": learners.projected,
    "estimators": learners.estimator,
    "sources": releases.sources,
    "Schema": schemas.schema,
    "load": saved.release_file,
    "load rows": saved.rows_file,
    "open_ledger": ledgers.ledger,
}


def one(gate: str, seed: int) -> Verdict:
    """Try one input of a gate."""
    return tried(GATES[gate](Dice(seed)), seed)
