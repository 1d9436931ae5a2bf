"""Scores of a public model on private rows: noisy sums within one budget, in one pass or two.

A label takes one pass. A value takes two: histograms say how far residuals and targets reach, so
that the second pass clips them there, and its noise is in proportion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dplinear.adaptive.noisy_sums import Answer, Budget, NoisySums, Query
from dplinear.arguments import wrong_type
from dplinear.arrays import Floats
from dplinear.exact.histograms import Histograms
from dplinear.exact.row_sums import Count, LeftOut
from dplinear.exact.rows import Rows
from dplinear.exact.shape import Shape
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account, Mechanism, Prepared
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import ZCDP
from dplinear.scores.clips import WHOLE, Clip, choose_clip
from dplinear.scores.histograms import LabelledScores, ResidualSizes
from dplinear.scores.predictions import Predictor
from dplinear.scores.terms import LabelTerms, ResidualTerms

_WHERE = "release_scores"
# What each score is made of: names of terms; and whether a histogram is what it needs.
VALUES: Mapping[str, tuple[str, ...]] = {
    "r2": ("e²", "t", "t²", "e⁴", "t⁴", "e²t²"),
    "rmse": ("e²", "e⁴"),
    "mae": ("|e|", "e²"),
    "bias": ("e", "e²"),
    "residuals": (),
}
LABELS: Mapping[str, tuple[str, ...]] = {
    "auc": (),
    "accuracy": ("right",),
    "log_loss": ("loss", "loss²"),
    "brier": ("brier", "brier²"),
    "calibration": ("y", "p", "brier"),
}
HISTOGRAMS = frozenset({"residuals", "auc", "calibration"})
SIZES = tuple(4.0 * 2.0 ** (-half / 2) for half in range(32, -1, -1))  # half-ranges of a target
ODDS = tuple(np.linspace(-10.0, 10.0, 41).tolist())
TARGET_BINS = 64
_COUNT, _LEFT_OUT = Fraction(1, 16), Fraction(1, 64)  # shares of μ²
_LOOK = Fraction(1, 16)  # for each histogram that only says where to clip
_SHOWN = Fraction(1, 5)  # for one that is released for its own sake
_CLEAR = 3.0  # deviations of noise above which a count is taken for rows
_SPREADS = tuple(2.0 ** (-half / 2) for half in range(24, -3, -1))


@dataclass(frozen=True)
class Question:
    """What is public about the rows to score and the model, before one is read."""

    shape: Shape
    predictor: Predictor = field(repr=False)
    target: int
    scores: Sequence[str]
    labels: bool
    leaves_out: bool = False
    count_varies: bool = False

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms that the scores are made of, each once."""
        needs = LABELS if self.labels else VALUES
        return tuple(dict.fromkeys(term for name in self.scores for term in needs[name]))

    @property
    def looks_at_target(self) -> bool:
        """Whether a score depends on how far targets spread."""
        return "t" in self.terms

    @property
    def shows_histogram(self) -> bool:
        """Whether a histogram is released for its own sake."""
        return any(name in HISTOGRAMS for name in self.scores)

    @property
    def coordinates(self) -> int:
        """How many numbers are released in all."""
        sizes = [1, int(self.leaves_out), len(self.terms)]
        if self.labels:
            sizes.append(2 * (len(ODDS) + 1) if self.shows_histogram else 0)
        else:
            sizes += [len(SIZES) + 1, TARGET_BINS if self.looks_at_target else 0]
        return sum(sizes)


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Released sums, from which scores follow. Public.

    `sums` and `deviations` are by the names of terms; `count` is the number of rows that count, or
    the weight of them. `histogram` has the counts of `LabelledScores` or of `ResidualSizes`. `clip`
    and `spread` are what residuals and targets are clipped at, around `centre`, in half-ranges.
    """

    sums: Mapping[str, float]
    deviations: Mapping[str, float]
    count: float
    count_deviation: float
    histogram: Floats
    histogram_deviation: float
    account: Account
    parameters: Mapping[str, Any]
    clip: Clip = WHOLE
    centre: float = 0.0
    spread: Clip = WHOLE


@dataclass(frozen=True, kw_only=True)
class Scores(Mechanism):
    """Sums of bounded terms of rows and of a public model's predictions, with Gaussian noise.

    Requires: an ApproxDP guarantee with ε and δ above 0, or a ZCDP one; a model made without these
    rows, or by a release of its own; predictions that are functions of single rows.
    Promises: the guarantee, exactly, of all sums and histograms together (docs/scores.md
    "Scores"): the chain of noisy sums spends one budget, each sum's sensitivity is verified on the
    integers, and where the second pass clips follows from what the first one released.
    """

    name: ClassVar[str] = "scores"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", checks.relation(self.neighbours, _WHERE))
        rule = "an ApproxDP guarantee with ε and δ above 0, or a ZCDP one"
        if type(self.guarantee) in checks.GRID_HINTS:
            hint = checks.GRID_HINTS[type(self.guarantee)]
            raise wrong_type("guarantee", _WHERE, rule, self.guarantee, hint)
        if not isinstance(self.guarantee, ZCDP):
            checks.approximate(self.guarantee, _WHERE, "normal noise", rule)

    def prepare(self, question: Question) -> "PreparedScores":
        """Calibrate the whole chain for public facts."""
        budget = Budget.of(self.guarantee, question.coordinates, self.neighbours, _WHERE)
        account = checks.exact_account(self.guarantee, budget.profile)
        return PreparedScores(question, budget, account)


@dataclass(frozen=True, eq=False)
class PreparedScores(Prepared[Rows, ScoreSums]):
    """A chain with a budget, ready to run once; `account` is what it will guarantee."""

    question: Question
    budget: Budget
    account: Account

    def run(self, table: Rows, entropy: Entropy) -> ScoreSums:
        """Release the sums."""
        chain = NoisySums(table, self.budget, entropy)
        return self._labels(chain) if self.question.labels else self._values(chain)

    def _labels(self, chain: NoisySums) -> ScoreSums:
        asked, place = self.question, (self.question.shape, self.question.predictor)
        queries = self._counts()
        if asked.shows_histogram:
            whole = _rest(queries)
            share = _SHOWN if asked.terms else whole
            queries["histogram"] = Query(LabelledScores(*place, asked.target, ODDS), share)
        if asked.terms:
            rest = _rest(queries)
            queries["terms"] = Query(LabelTerms(*place, asked.target, asked.terms), rest)
        return self._released(_ask(chain, queries), chain)

    def _values(self, chain: NoisySums) -> ScoreSums:
        asked, place = self.question, (self.question.shape, self.question.predictor)
        queries = self._counts()
        share = _SHOWN if asked.shows_histogram else _LOOK
        if not asked.terms:
            share = _rest(queries)
        queries["histogram"] = Query(ResidualSizes(*place, asked.target, SIZES), share)
        if asked.looks_at_target:
            look = Histograms(asked.shape, [asked.target], TARGET_BINS)
            queries["targets"] = Query(look, _LOOK)
        found = _ask(chain, queries)
        if not asked.terms:
            return self._released(found, chain)
        noise = found["histogram"].sigma  # about that of the sums which are asked for next
        clip = choose_clip(found["histogram"], _ends(SIZES), SIZES, noise)
        centre, spread = 0.0, WHOLE
        if asked.looks_at_target:
            middles = np.asarray((np.arange(TARGET_BINS) + 0.5) * (2 / TARGET_BINS) - 1)
            centre = _middle(found["targets"], middles)
            ends = np.abs(middles - centre) + 1 / TARGET_BINS
            spread = choose_clip(found["targets"], ends, _SPREADS, noise, float(ends.max()))
        terms = ResidualTerms(*place, asked.target, asked.terms, clip.at, centre, spread.at)
        found |= _ask(chain, {"terms": Query(terms, chain.remaining)})
        return self._released(found, chain, clip=clip, centre=centre, spread=spread)

    def _counts(self) -> dict[str, Query]:
        queries = {"count": Query(Count(varies=self.question.count_varies), _COUNT)}
        if self.question.leaves_out:
            queries["left out"] = Query(LeftOut(), _LEFT_OUT)
        return queries

    def _released(self, found: Mapping[str, Answer], chain: NoisySums, **clips: Any) -> ScoreSums:
        names = self.question.terms
        sums, deviations = {}, {}
        if names:
            terms = found["terms"]
            known = (LabelTerms if self.question.labels else ResidualTerms).known
            weights = np.array([float(known[name][1]) for name in names])
            sums = dict(zip(names, (terms.values / weights).tolist(), strict=True))
            deviations = dict(zip(names, (terms.sigma / weights).tolist(), strict=True))
        shown = found.get("histogram")
        parameters: dict[str, Any] = {"mu": self.budget.mu, "spent": float(1 - chain.remaining)}
        if "left out" in found:
            left = found["left out"]
            parameters |= {
                "rows_left_out": float(left.values[0]),
                "rows_left_out_noise": left.sigma,
            }
        return ScoreSums(
            sums=sums,
            deviations=deviations,
            count=float(found["count"].values[0]),
            count_deviation=found["count"].sigma,
            histogram=np.zeros(0) if shown is None else shown.values,
            histogram_deviation=0.0 if shown is None else shown.sigma,
            account=self.account,
            parameters=parameters,
            **clips,
        )


def _rest(queries: Mapping[str, Query]) -> Fraction:
    """Return what is left of a whole budget."""
    return 1 - sum((query.share for query in queries.values()), Fraction(0))


def _ask(chain: NoisySums, queries: Mapping[str, Query]) -> dict[str, Answer]:
    return dict(zip(queries, chain.ask(list(queries.values())), strict=True))


def _ends(edges: Sequence[float]) -> Floats:
    """Return about how large what a bin counts is: the end of it, and twice the last one."""
    return np.array([*edges, 2 * edges[-1]])


def _middle(counts: Answer, middles: Floats) -> float:
    """Return about the mean of what a histogram counts; 0 where nothing stands out."""
    rows = np.where(counts.values > _CLEAR * counts.sigma, counts.values, 0.0)
    return float(rows @ middles / rows.sum()) if rows.any() else 0.0
