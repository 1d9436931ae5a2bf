"""Algorithms 3, 5 and 6 of Ediger 2021, with their splits and starting values.

They spend less than they are given: the third share of Algorithm 3 is never used, and the numbers
of Algorithm 5 do not add up. What is certified is what is spent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear import arguments
from dplinear.adaptive.noisy_sums import Budget, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.coinpress import radii
from dplinear.coinpress.products import Products
from dplinear.coinpress.regression import CoinPressRegression
from dplinear.exact.design import Design
from dplinear.exact.mapped_sums import MappedGram, MappedSum
from dplinear.exact.residual_sums import SumOfSquares
from dplinear.exact.row_sums import Count
from dplinear.exact.rows import Rows
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.model import PreparedModel, Solution
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import ZCDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.rounding import up

_PARTS = (Fraction(1, 10), Fraction(9, 20))  # of Algorithm 3; another 9/20 goes unused
_REST = Fraction(2, 3)  # what Algorithms 5 and 6 hand to Algorithm 3
_OWN = {"identity": Fraction(0), "covariance": Fraction(1, 5), "mean": Fraction(1, 3)}
SPENT: dict[str, Fraction] = {
    name: own + (_REST if own else 1) * sum(_PARTS, Fraction(0)) for name, own in _OWN.items()
}
_SPLIT = (Fraction(1, 4), Fraction(3, 4))
_MEAN_BETA, _COVARIANCE_BETA = 0.01, 0.1
_ALGORITHM = {"identity": 3, "covariance": 5, "mean": 6}
_WHERE = "PublishedCoinPress"
_UNKNOWN = "The paper's algorithms say nothing of their errors."


@dataclass(frozen=True, kw_only=True)
class PublishedCoinPress(CoinPressRegression):
    """The algorithm for a structure that is known; the certificate says what it spends.

    Requires: ZCDP; replace neighbours, as the paper needs a public n; `structure` "identity"
    (Algorithm 3), "covariance" (5) or "mean" (6, and an intercept); `unit`, what 1 in the paper is
    in cells.
    """

    unit: float = 1.0
    calibration: ClassVar[str] = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        arguments.positive(self.unit, "unit", _WHERE)
        if not isinstance(self.guarantee, ZCDP):
            rule = "a ZCDP guarantee, where the paper's algorithms are used"
            raise arguments.wrong_type("guarantee", _WHERE, rule, self.guarantee)
        if self.neighbours is not Neighbours.REPLACE:
            rule = "'replace', where the paper's algorithms are used: they need a public n"
            raise arguments.rejection("neighbours", _WHERE, rule, self.neighbours)
        if self.structure not in SPENT:
            hint = "the paper has no algorithm for unknown means and covariances together."
            kinds = " or ".join(repr(name) for name in SPENT)
            rule = f"{kinds}, where the paper's algorithms are used"
            raise arguments.rejection("structure", _WHERE, rule, self.structure, hint)
        if self.radius == "planned":
            rule = "'gaussian' or 'subexponential', where the paper's algorithms are used"
            raise arguments.rejection("radius", _WHERE, rule, self.radius)

    def prepare(self, design: Design) -> "PreparedPublished":
        """Calibrate for what the algorithm spends of the guarantee's ρ."""
        guarantee, structure = self.guarantee, self.structure
        assert isinstance(guarantee, ZCDP)  # noqa: S101 - checked above
        if design.intercept != (structure == "mean"):
            rule = "given with structure='mean', and with no other, where the paper's are used"
            raise arguments.rejection("intercept", _WHERE, rule, design.intercept)
        share = float(SPENT[structure])
        spent = ZCDP(up(guarantee.rho * share))
        d = design.dimension
        budget = Budget.of(spent, 2 * d * d + 4 * d + 3, Neighbours.REPLACE, _WHERE)
        note = f"Algorithm {_ALGORITHM[structure]} spends {share:.3g} of the ρ that it is given."
        account = Account(guarantee, spent, budget.profile, (note,))
        radius = self.radius or "gaussian"
        return PreparedPublished(design, budget, account, structure, radius, self.unit)


@dataclass(frozen=True)
class PreparedPublished(PreparedModel):
    """One of the paper's algorithms, ready to run once."""

    design: Design
    budget: Budget
    account: Account
    structure: str
    radius: str
    unit: float

    def run(self, rows: Rows, entropy: Entropy) -> Solution:
        """Run the algorithm."""
        sums = NoisySums(rows, self.budget, entropy)
        (count,) = sums.ask([Query(Count(), Fraction(1, 2))])  # public under replace: it is free
        run = _Run(self.design, sums, max(float(count.values[0]), 1.0), self.radius, self.unit)
        whole = SPENT[self.structure]
        rest = (_REST if _OWN[self.structure] else 1) / whole
        if self.structure == "identity":
            coefficients = run.line(run.features, rest)
        elif self.structure == "covariance":
            root = run.whitening(_OWN[self.structure] / whole)
            coefficients = root @ run.line(root @ run.features, rest)
        else:
            coefficients = run.centred_line(_OWN[self.structure] / whole, rest)
        facts = {"mu": self.budget.mu, "spent": float(1 - sums.remaining), "unit": self.unit}
        return Solution(coefficients, self.account, facts, unknown=_UNKNOWN)


@dataclass(frozen=True, eq=False)
class _Run:
    """The steps, in the paper's units: maps of cells are divided by `unit`."""

    design: Design
    sums: NoisySums
    rows: float
    radius: str
    unit: float

    @property
    def features(self) -> Floats:
        """The map from a row to its features, without the constant, in the paper's units."""
        own = self.design.features[int(self.design.intercept) :]
        matrix = np.zeros((len(own), self.design.shape.dimension))
        matrix[np.arange(len(own)), own] = 1 / self.unit
        return matrix

    @property
    def target(self) -> Floats:
        weights = np.zeros(self.design.shape.dimension)
        weights[self.design.target] = 1 / self.unit
        return weights

    def line(self, features: Floats, share: Fraction) -> Floats:
        """Algorithm 3: the mean of x·y, scaled by what E[y²] says of its covariance."""
        size = len(features)
        square = self._variance(100.0 * size, _PARTS[0] * share)
        # The paper takes the noise variance to be 1: ‖β‖² ≈ E[y²] − 1, and 2‖β‖² + 1 dominates.
        scale = math.sqrt(max(2 * (square - 1) + 1, 1.0))
        weights = self.target / scale
        centre, radius = np.zeros(size), 100 * math.sqrt(size)
        length = radii.tail(size, _MEAN_BETA)
        if self.radius == "subexponential":
            length *= radii.tail(1, _MEAN_BETA) / math.sqrt(2)
        for part in _SPLIT:
            clip = radii.reach(radius, length)
            products = Products(self.design.shape, features, weights, centre, clip)
            (answer,) = self.sums.ask([Query(products, _PARTS[1] * share * part)])
            centre = centre + answer.values / self.rows
            radius = radii.ball(self.rows, answer.sigma / self.rows, size, _MEAN_BETA)
        return np.asarray(centre * scale)

    def _variance(self, start: float, share: Fraction) -> float:
        """Algorithm 2: E[y²], by covariance steps in one dimension."""
        root, clip, square = 1 / math.sqrt(start), radii.tail(1, _COVARIANCE_BETA), 0.0
        for part in _SPLIT:
            squares = SumOfSquares(self.design.shape, self.target * root, clip)
            (answer,) = self.sums.ask([Query(squares, share * part)])
            image = max(float(answer.values[0]) / self.rows, 0.0)
            square = image / root**2
            root /= math.sqrt(image + radii.sampling(1, self.rows))
        return square

    def whitening(self, share: Fraction) -> Floats:
        """Algorithm 4: Σ̂^(−1/2), by covariance steps.

        Noise may leave Σ̂ without an inverse, of which the paper says nothing: eigenvalues of the
        last step are raised to the η of the others.
        """
        features = self.features
        size = len(features)
        clip = radii.tail(size, _COVARIANCE_BETA)
        root, covariance = np.eye(size) / math.sqrt(10 * math.sqrt(size)), np.eye(size)
        for part in _SPLIT:
            gram = MappedGram(self.design.shape, root @ features, clip)
            (answer,) = self.sums.ask([Query(gram, share * part)])
            values, vectors = np.linalg.eigh(answer.values / self.rows)
            least = radii.sampling(size, self.rows)
            image = (vectors * np.maximum(values, least)) @ vectors.T
            back = np.linalg.inv(root)
            covariance = back @ image @ back.T
            root = (vectors / np.sqrt(np.maximum(values, 0.0) + least)) @ vectors.T @ root
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray((vectors / np.sqrt(values)) @ vectors.T)

    def centred_line(self, own: Fraction, rest: Fraction) -> Floats:
        """Algorithm 6: centre by a private mean, add a column of ones, and run Algorithm 3.

        Its own line keeps the slopes only; the intercept follows from what it throws away.
        """
        features, ones = self.features, self._ones
        size = len(features)
        centre = self._mean(features, ones, [own * part for part in _SPLIT], 100 * math.sqrt(size))
        whole = self.line(np.vstack((features - np.outer(centre, ones), ones)), rest)
        slopes = whole[:-1]
        intercept = (float(whole[-1]) - float(centre @ slopes)) * self.unit
        return np.concatenate(([intercept], slopes))

    @property
    def _ones(self) -> Floats:
        ones = np.zeros(self.design.shape.dimension)
        ones[self.design.features[0]] = 1.0
        return ones

    def _mean(
        self, features: Floats, ones: Floats, shares: Sequence[Fraction], radius: float
    ) -> Floats:
        size = len(features)
        centre, length = np.zeros(size), radii.tail(size, _MEAN_BETA)
        for share in shares:
            clip = radii.reach(radius, length)
            moved = features - np.outer(centre, ones)
            (answer,) = self.sums.ask([Query(MappedSum(self.design.shape, moved, clip), share)])
            centre = centre + answer.values / self.rows
            radius = radii.ball(self.rows, answer.sigma / self.rows, size, _MEAN_BETA)
        return centre
