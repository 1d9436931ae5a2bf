"""The error of one regression, by every way to it: looked up in the table of simulated errors.

Tables look like real ones (`real_like`), unless the caller names their `tails`: then they are
simulated in all, with rows and errors of one law. So are tables of the levels of long categories.
"""

import math
from dataclasses import replace
from typing import ClassVar

from dplinear.mechanisms.moments.analyze_gauss import AnalyzeGauss
from dplinear.planner.contest import NAMES
from dplinear.planner.errors.curves import PROPORTIONAL, WHOLE_MATRIX, Size
from dplinear.planner.errors.lookup import Assumed, error_table, real_like_table
from dplinear.planner.errors.matrix_errors import Public, noise_of, noise_size, why_refused
from dplinear.planner.errors.real_like_errors import TYPICAL_SHARE, Looks
from dplinear.planner.errors.simulated_errors import COLUMNS
from dplinear.planner.facts import CONDITIONS, EXPLAINED, Facts
from dplinear.planner.populations import TAILS, WIDTH
from dplinear.planner.questions import (
    Prediction,
    Question,
    Refusal,
    in_a_set,
    join_words,
    lognormal,
    over_all,
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
_SHARES = (0.08, 0.2, 0.5)  # that a best line explains, where nobody says
_MOST_LEVELS = 1_500  # of a table that was compared with its plan (docs/planning.md)
_MOST_CORRELATED = 40.0  # condition number of correlations, of real-like and real tables
_MOST_X = 1e5  # of tables of one law: rows·μ for each coefficient, which curves go on to


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
        size = _size("", facts)
        if is_real_like(facts):
            found = [real_like_table().floor(size, looks) for looks in _all_looks(facts)]
        else:
            found = [error_table().floor(size, kind) for kind in _kinds(facts)]
        return math.exp(sum(map(math.log, found)) / len(found))

    def predict(self, way: str, facts: Facts) -> Prediction:
        """Look the error up, of another package's mechanism that of normal noise of its size."""
        known, own = (way, "") if way in NAMES else (AnalyzeGauss.name, _ALIKE)
        if is_real_like(facts):
            return _predict_real(known, _size(way, facts), facts, own)
        table, size = error_table(), _size(way, facts)
        each = []
        for kind in _kinds(facts):
            found = table.find(known, size, kind)
            note = _OUTSIDE if found.outside else own
            each.append(lognormal(found.error, found.spread, note))
        prediction = over_kinds(facts, each)
        if facts.width == WIDTH and facts.explained in {None, EXPLAINED}:
            return prediction
        note = "; ".join(part for part in (prediction.note, _SCALED) if part)
        return replace(prediction, note=note)

    def beyond(self, facts: Facts) -> Refusal | None:
        """Return why nothing is recommended: more columns, rows or budget than any that was tried.

        With fewer rows, or a smaller budget, than any there is next to nothing to learn.
        """
        most = _most_columns(facts)
        if facts.columns > most:
            said = f"Tables of more than {most:,} columns were not simulated."
            return Refusal(said, "dpl.forecast simulates tables of your own kind.")
        if is_real_like(facts) and (facts.condition or 1.0) > _MOST_CORRELATED:
            said = (
                "Columns whose correlations have a condition number above "
                f"{_MOST_CORRELATED:g}, as where two say nearly the same, were not simulated."
            )
            return Refusal(said, "leave one of such columns out, or join them.")
        reached = real_like_table().most_x if is_real_like(facts) else _MOST_X
        rows = reached * (facts.columns + 1) / facts.mu
        if facts.counted > rows:
            said = f"At this budget no table of more than {_round_down(rows):,} rows was simulated."
            return Refusal(said, "plan with so many: with more rows the error is no larger.")
        return None

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


def is_real_like(facts: Facts) -> bool:
    """Say whether a table is taken to look like a real one.

    How many of several rows of a person should count was judged on panels with plans of one law.
    """
    several = facts.units is not None and max(facts.units.sizes) > 1
    return facts.tails is None and not facts.levels and not several


def _most_columns(facts: Facts) -> int:
    if facts.levels:
        return _MOST_LEVELS
    return real_like_table().most_columns if is_real_like(facts) else max(COLUMNS)


def _round_down(rows: float) -> int:
    """Return a number with two digits that count."""
    unit: int = 10 ** max(math.floor(math.log10(rows)) - 1, 0)
    return int(rows // unit) * unit


def _all_looks(facts: Facts) -> list[Looks]:
    """Return how the table may look: all shapes and shares that were left open."""
    shapes = real_like_table().targets if facts.target_shape is None else (facts.target_shape,)
    shares = _SHARES if facts.explained is None else (facts.explained,)
    ones = TYPICAL_SHARE if facts.zero_one is None else facts.zero_one
    width = facts.target_width
    if width is None and facts.width != WIDTH:
        width = facts.width
    return [Looks(shape, share, ones, width) for shape in shapes for share in shares]


def _predict_real(name: str, size: Size, facts: Facts, note: str) -> Prediction:
    """Look up what is left open, and say what that was."""
    table = real_like_table()
    each = [lognormal(*table.find(name, size, looks)) for looks in _all_looks(facts)]
    given = {
        "the shape of the target": facts.target_shape,
        "the share that a line explains": facts.explained,
    }
    left = [words for words, value in given.items() if value is None]
    said = [f"you did not give {join_words(left)}, so this covers all values"] if left else []
    return over_all(each, "; ".join([*said, *([note] if note else [])]))


def _kinds(facts: Facts) -> list[Assumed]:
    conditions = CONDITIONS if facts.condition is None else (facts.condition,)
    tails = TAILS if facts.tails is None else (facts.tails,)
    share = EXPLAINED if facts.explained is None else facts.explained
    return [Assumed(condition, tail, share) for condition in conditions for tail in tails]


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
