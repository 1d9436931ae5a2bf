"""The matrices that standard errors of logistic regression rest on: of curvature, and of scores.

Each is Σ v vᵀ over the rows, v a whitened row, shortened as for the gradient, times a number of at
most 1 that the model's chance gives (docs/exact-pass.md, "Other sums").
"""

from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dplinear.arguments import integer, real, rejection
from dplinear.arrays import Floats, Integers
from dplinear.exact.integers import bound_norms, product, squared_lengths
from dplinear.exact.logistic_sums import decay, round_weights, scores, unit_of_margins
from dplinear.exact.public_maps import bits, in_units, longest, power, rounded_matrix
from dplinear.exact.row_sums import RowSum, freeze
from dplinear.exact.shape import Shape

_BITS = 20  # of a row's vector, so that sums of 4096 products are exact


@dataclass(frozen=True, eq=False)
class LogisticGram(RowSum):
    """Σ w(σ)·σ(1 − σ)·c cᵀ, c = clip(W x), or with a `label` Σ w(σ)²·(y − σ)²·c cᵀ.

    The first is how curved the likelihood is, the second how scores vary; σ, y, w and c are those
    of `LogisticGradient`.

    Requires: `whitening`, `weights`, `leverage` and `score` as for `LogisticGradient`; `label`, a
    cell that neither of the first two uses, or None.
    Promises: W and the weights are rounded as there; each row's vector v, which is c times
    2·√(w·σ(1 − σ)) or w·(y − σ)/score, to integers of norm at most N ≤ 2^20, verified on them. The
    whole symmetric matrix Σ v vᵀ, row by row, so that `bound` = N² is its sensitivity in Frobenius
    norm.
    """

    shape: Shape
    whitening: InitVar[npt.ArrayLike]
    weights: InitVar[npt.ArrayLike]
    leverage: float
    score: float = 1.0
    label: int | None = None
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 2
    symmetric: ClassVar[bool] = True
    integers: Floats = field(init=False, repr=False)
    scales: tuple[int, int] = field(init=False)
    _longest: int = field(init=False, repr=False)
    _margin_unit: float = field(init=False, repr=False)
    _leverage: float = field(init=False, repr=False)
    _step: float = field(init=False, repr=False)

    def __post_init__(self, whitening: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        where = "LogisticGram"
        matrix, first = rounded_matrix(whitening, self.shape, "whitening", where)
        row, second = round_weights(weights, self.shape, where)
        score = real(self.score, "score", where, low=0.5, high=1.0)
        integers = np.concatenate((matrix, row))
        integers.flags.writeable = False
        if self.label is not None:
            label = integer(self.label, "label", where, low=0, high=self.shape.dimension - 1)
            if integers[:, label].any():
                rule = "a cell that neither whitening nor weights use"
                raise rejection("label", where, rule, label)
        unit = power(-first) / self.shape.steps_per_unit
        lever = in_units(self.leverage, "leverage", where, unit=unit, reach=longest(len(matrix)))
        shift = bits(lever) - _BITS
        most = int(lever / power(shift))
        worth = Fraction(1, 4) if self.label is None else Fraction(score) ** 2
        freeze(self, size=len(matrix) ** 2, integers=integers, scales=(first, second), score=score)
        freeze(self, bound=most**2, unit=(unit * power(shift)) ** 2 * worth, _longest=most)
        freeze(self, _leverage=float(lever), _step=2.0**-shift)
        freeze(self, _margin_unit=unit_of_margins(second, self.shape))

    def sum(self, rows: Floats) -> Integers:
        """Return the matrix of the shortened and weighted vectors, flat."""
        products = product(self.integers, rows)
        whitened, margins = products[:-1], products[-1]
        factor = self._weigh(margins, rows)
        factor *= self._step
        lengths = np.sqrt(squared_lengths(whitened))
        factor *= self._leverage / np.maximum(lengths, self._leverage)
        terms = np.multiply(whitened, factor, out=whitened)
        bound_norms(np.rint(terms, out=terms), self._longest**2)
        return (terms @ terms.T).astype(np.int64).ravel()

    def _weigh(self, margins: Floats, rows: Floats) -> Floats:
        """Return what each row's vector is multiplied by, at most 1 in size."""
        if self.label is not None:
            labels = rows[self.label] > 0
            return scores(margins, self._margin_unit, labels, self.score) / self.score
        odds = decay(margins, self._margin_unit)
        likely = 1.0 / (1.0 + odds)
        return np.asarray(np.sqrt(4.0 * odds * likely * np.minimum(likely, self.score)))
