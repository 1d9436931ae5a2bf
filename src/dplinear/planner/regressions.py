"""The error of one regression, by every way to it: looked up in the table of simulated errors."""

import math
from dataclasses import replace
from typing import ClassVar

from dplinear.planner.contest import NAMES, SOLVERS
from dplinear.planner.errors.curves import PROPORTIONAL, WHOLE_MATRIX, Size
from dplinear.planner.errors.lookup import Assumed, error_table
from dplinear.planner.errors.matrix_errors import LAWS, Public, noise_size, why_refused
from dplinear.planner.facts import CONDITIONS, EXPLAINED, Facts
from dplinear.planner.populations import TAILS, WIDTH
from dplinear.planner.questions import (
    Prediction,
    Question,
    Refusal,
    in_a_set,
    lognormal,
    over_kinds,
    refusal_reason,
    terms,
)
from dplinear.privacy.neighbours import Neighbours

_OUTSIDE = "beyond the simulated sizes: extrapolated by the law of its noise"
_SCALED = "scaled from bounds at four standard deviations and an R² of one half"


class Regression(Question):
    """One linear regression of one target."""

    name: ClassVar[str] = "regression"
    measure: ClassVar[str] = (
        "excess risk on new rows, as a share of the variance that the best line explains: "
        "0 is the best line, 1 the mean of the target"
    )
    ways: ClassVar[tuple[str, ...]] = NAMES
    target: ClassVar[bool] = True
    trivial: ClassVar[float | None] = 1.0

    def floor(self, facts: Facts) -> float:
        """Return the error of least squares; over all kinds of tables that were left open."""
        table = error_table()
        found = [table.floor(_size("", facts), kind) for kind in _kinds(facts)]
        return math.exp(sum(map(math.log, found)) / len(found))

    def predict(self, way: str, facts: Facts) -> Prediction:
        """Look the error up."""
        table, size = error_table(), _size(way, facts)
        each = []
        for kind in _kinds(facts):
            found = table.find(way, size, kind)
            each.append(lognormal(found.error, found.spread, _OUTSIDE if found.outside else ""))
        prediction = over_kinds(facts, each)
        if facts.width == WIDTH and facts.explained == EXPLAINED:
            return prediction
        note = "; ".join(part for part in (prediction.note, _SCALED) if part)
        return replace(prediction, note=note)

    def call(self, way: str, facts: Facts) -> str:
        """Return a release of one model, or of moments and a regression on them."""
        if way in SOLVERS:
            return f'dpl.release_model(data, schema, target, {terms(facts)}, mechanism="{way}")'
        asked = f'{terms(facts)}, mechanism="{way}"'
        return f"dpl.release_moments(data, schema, {asked}).regress(target)"

    def refusal(self, way: str, facts: Facts) -> Refusal | None:
        """Return the way's own sentence."""
        return refusal_reason(SOLVERS[way], facts) if way in SOLVERS else why_refused(way, facts)

    def elsewhere(self, facts: Facts) -> str:
        """Return how a model is learnt in a set."""
        return in_a_set(facts, "target_bounds=...")


def _kinds(facts: Facts) -> list[Assumed]:
    conditions = CONDITIONS if facts.condition is None else (facts.condition,)
    tails = TAILS if facts.tails is None else (facts.tails,)
    return [Assumed(condition, tail, facts.explained) for condition in conditions for tail in tails]


def _size(way: str, facts: Facts) -> Size:
    """Return the size that a way sees; replaced rows make it as much smaller as noise is larger."""
    square = facts.square if way in WHOLE_MATRIX | PROPORTIONAL else facts.columns + 2.0
    return Size(facts.rows, facts.columns, facts.mu * _weaker(way, facts), square, facts.width)


def _weaker(way: str, facts: Facts) -> float:
    """Return the share of μ that is left where rows are replaced, not added or removed."""
    if facts.neighbours is not Neighbours.REPLACE or not way:
        return 1.0
    if way not in LAWS:
        return math.sqrt(0.5) if way in WHOLE_MATRIX else 0.5
    public = Public.of(facts)
    both = (replace(public, neighbours=Neighbours.ADD_REMOVE), public)
    added, replaced = (noise_size(LAWS[way](one)) for one in both)
    return added / replaced
