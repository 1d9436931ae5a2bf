"""A noisy histogram of how many rows units have: a unit is one count in one bin.

Neighbours differ by one unit, which moves one of the counts by at most 1, so that L1 and L2
sensitivity are both 1, however many bins there are (docs/theory/units.md). Discrete Laplace noise
is then pure ε, and smaller than normal noise for any δ in use; a ρ-zCDP guarantee has discrete
Gaussian noise. Both are drawn exactly, on the integers of the sums.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import BigIntegers, Floats
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms.checks import GRID_HINTS, exact_account
from dplinear.mechanisms.contract import Account, Mechanism, Prepared
from dplinear.noise import discrete
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.concentrated import Concentrated
from dplinear.privacy.profiles.laplace import Pure

_WHERE = "suggest_rows_per_unit"
_LARGEST_SCALE, _LARGEST_VARIANCE = Fraction(2**60), Fraction(2**100)


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """Noisy numbers of units, bin by bin, and the standard deviation of their noise. Public."""

    counts: Floats
    deviation: float
    account: Account
    parameters: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class UnitSizeHistogram(Mechanism):
    """Numbers of units by their number of rows.

    Requires: a PureDP or ApproxDP guarantee, kept as pure ε; or a ZCDP one. Neighbours by one unit
    more or less.
    Promises: that guarantee, exactly, of all counts together.
    """

    name: ClassVar[str] = "unit_size_histogram"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        relation = Neighbours.parse(self.neighbours, _WHERE, (Neighbours.ADD_REMOVE,))
        object.__setattr__(self, "neighbours", relation)
        rule = "a PureDP, ApproxDP or ZCDP guarantee"
        if not isinstance(self.guarantee, PureDP | ApproxDP | ZCDP):
            hint = GRID_HINTS.get(type(self.guarantee), "")
            raise wrong_type("guarantee", _WHERE, rule, self.guarantee, hint)
        if isinstance(self.guarantee, ApproxDP) and self.guarantee.epsilon == 0:
            raise rejection("guarantee", _WHERE, "of an ε above 0", self.guarantee)

    def prepare(self, bins: int) -> "PreparedHistogram":
        """Calibrate for a number of bins."""
        guarantee = self.guarantee
        noise = _scale(guarantee)
        largest = _LARGEST_VARIANCE if isinstance(guarantee, ZCDP) else _LARGEST_SCALE
        if noise > largest:
            hint = "that much noise leaves nothing of any table: ask for a larger ε or ρ."
            raise rejection("guarantee", _WHERE, "within reach", guarantee, hint)
        profile = (
            Concentrated(guarantee.rho) if isinstance(guarantee, ZCDP) else Pure(guarantee.epsilon)  # type: ignore[union-attr]  # checked above
        )
        account = exact_account(guarantee, profile)
        return PreparedHistogram(bins, isinstance(guarantee, ZCDP), noise, account)


def _scale(guarantee: Guarantee) -> Fraction:
    """Return the scale of Laplace noise, or the variance of normal noise, for a shift of `WHOLE`.

    As fractions: the losses are exactly ε = WHOLE/scale and ρ = WHOLE²/(2·variance).
    """
    if isinstance(guarantee, ZCDP):
        return WHOLE**2 / (2 * Fraction(guarantee.rho))
    return WHOLE / Fraction(guarantee.epsilon)  # type: ignore[union-attr]  # checked above


@dataclass(frozen=True)
class PreparedHistogram(Prepared[BigIntegers, NoisyHistogram]):
    """A histogram with its noise, ready to run once."""

    bins: int
    normal: bool
    noise: Fraction
    account: Account

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, in units; next to exact where it is large."""
        spread = math.sqrt(self.noise) if self.normal else math.sqrt(2) * float(self.noise)
        return spread / WHOLE

    def run(self, table: BigIntegers, entropy: Entropy) -> NoisyHistogram:
        """Add noise to every sum, and round each once."""
        draw = discrete.gaussian if self.normal else discrete.laplace
        drawn = draw(self.noise, self.bins, entropy=entropy).tolist()
        noisy = [int(exact) + noise for exact, noise in zip(table, drawn, strict=True)]
        counts = np.array([float(Fraction(each, WHOLE)) for each in noisy])
        parameters = {
            "noise": "discrete Gaussian" if self.normal else "discrete Laplace",
            "deviation": self.deviation,
            "bins": self.bins,
        }
        return NoisyHistogram(counts, self.deviation, self.account, parameters)
