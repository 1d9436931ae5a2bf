"""The error of one regression, by every way to it: looked up in the table of simulated errors."""

import math
from dataclasses import replace
from typing import ClassVar

from dplinear.mechanisms.moments.analyze_gauss import AnalyzeGauss
from dplinear.planner.contest import NAMES
from dplinear.planner.errors.curves import PROPORTIONAL, WHOLE_MATRIX, Size
from dplinear.planner.errors.lookup import Assumed, error_table
from dplinear.planner.errors.matrix_errors import Public, noise_of, noise_size, why_refused
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
from dplinear.registry import MODELS, MOMENTS

_OUTSIDE = "beyond the simulated sizes: extrapolated by the law of its noise"
_ALIKE = "as normal noise of the same size would be, which was simulated"
_UNSIMULATED = "No table of simulated errors has {}."
_SCALED = "scaled from bounds at four standard deviations and an R² of one half"


class Regression(Question):
    """One linear regression of one target."""

    name: ClassVar[str] = "regression"
    measure: ClassVar[str] = (
        "excess risk on new rows, as a share of the variance that the best line explains: "
        "0 is the best line, 1 the mean of the target"
    )
    target: ClassVar[bool] = True
    trivial: ClassVar[float | None] = 1.0

    @property
    def ways(self) -> tuple[str, ...]:
        """Every mechanism for one model, and every one for second moments."""
        return *MODELS["squared"], *MOMENTS

    def floor(self, facts: Facts) -> float:
        """Return the error of least squares; over all kinds of tables that were left open."""
        table = error_table()
        found = [table.floor(_size("", facts), kind) for kind in _kinds(facts)]
        return math.exp(sum(map(math.log, found)) / len(found))

    def predict(self, way: str, facts: Facts) -> Prediction:
        """Look the error up, of another package's mechanism that of normal noise of its size."""
        table, size = error_table(), _size(way, facts)
        known, own = (way, "") if way in NAMES else (AnalyzeGauss.name, _ALIKE)
        each = []
        for kind in _kinds(facts):
            found = table.find(known, size, kind)
            note = _OUTSIDE if found.outside else own
            each.append(lognormal(found.error, found.spread, note))
        prediction = over_kinds(facts, each)
        if facts.width == WIDTH and facts.explained == EXPLAINED:
            return prediction
        note = "; ".join(part for part in (prediction.note, _SCALED) if part)
        return replace(prediction, note=note)

    def call(self, way: str, facts: Facts) -> str:
        """Return a release of one model, or of moments and a regression on them."""
        if way in MODELS["squared"]:
            return f'dpl.release_model(data, schema, target, {terms(facts)}, mechanism="{way}")'
        asked = f'{terms(facts)}, mechanism="{way}"'
        return f"dpl.release_moments(data, schema, {asked}).regress(target)"

    def refusal(self, way: str, facts: Facts) -> Refusal | None:
        """Return the way's own sentence."""
        if way not in MODELS["squared"]:
            return why_refused(way, facts)
        refused = refusal_reason(MODELS["squared"][way], facts)
        if refused is None and way not in NAMES:
            asked = terms(replace(facts, units=None))
            size = f'{facts.rows}, {facts.columns}, {asked}, mechanisms=["{way}"]'
            return Refusal(_UNSIMULATED.format(way), f"`dpl.forecast({size})` simulates it.")
        return refused

    def elsewhere(self, facts: Facts) -> str:
        """Return how a model is learnt in a set."""
        return in_a_set(facts, "target_bounds=...")


def _kinds(facts: Facts) -> list[Assumed]:
    conditions = CONDITIONS if facts.condition is None else (facts.condition,)
    tails = TAILS if facts.tails is None else (facts.tails,)
    return [Assumed(condition, tail, facts.explained) for condition in conditions for tail in tails]


def _size(way: str, facts: Facts) -> Size:
    """Return the size that a way sees; replaced rows make it as much smaller as noise is larger."""
    whole = way in WHOLE_MATRIX | PROPORTIONAL or way in MOMENTS
    square = facts.square if whole else facts.columns + 2.0
    mu = facts.mu * _weaker(way, facts) if way in NAMES or not way else _mu_of_noise(way, facts)
    return Size(facts.counted, facts.columns, mu, square, facts.width, facts.sample)


def _mu_of_noise(way: str, facts: Facts) -> float:
    """Return the μ of normal noise of the same size on second moments."""
    size = noise_size(noise_of(MOMENTS[way], Public.of(facts)))
    return facts.square / (math.sqrt(2) * size)


def _weaker(way: str, facts: Facts) -> float:
    """Return the share of μ that is left where rows are replaced, not added or removed."""
    if facts.neighbours is not Neighbours.REPLACE or not way:
        return 1.0
    if way not in MOMENTS:
        return math.sqrt(0.5) if way in WHOLE_MATRIX else 0.5
    public = Public.of(facts)
    both = (replace(public, neighbours=Neighbours.ADD_REMOVE), public)
    added, replaced = (noise_size(noise_of(MOMENTS[way], one)) for one in both)
    return added / replaced
