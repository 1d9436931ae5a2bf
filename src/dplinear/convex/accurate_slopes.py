"""Slopes of smooth losses with a proved error: in float64, and as exact as is asked for.

`SmoothLoss` says what the slope of a loss is in real numbers: clipped at ±slope, with a ramp for
the hinge's jump, and for the logistic loss with margins beyond ±32 counted as that. All of these
rise with the margin, so that each is the slope of a convex loss, which is what perturbations need.
"""

import decimal
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dplinear.arrays import Floats
from dplinear.convex.losses import HingeLoss, HuberLoss, LogisticLoss, signs
from dplinear.convex.smooth_losses import SmoothLoss

ERROR = 2.0**-49  # of `slopes`, in parts of the largest slope: 16 roundings
_FARTHEST = 32
_PARTS = 64  # of 1, into which margins are cut
_TERMS = 8  # of the series of exp(−r), r ≤ 1/64: what is left out is below 2^−69


def slopes(loss: SmoothLoss, margins: Floats, rest: Floats, labels: Floats) -> Floats:
    """Return the slopes at margins + rest, two numbers for each row.

    Requires: |rest| ≤ 2^−52·|margins|; labels that float64 holds.
    Promises: within `ERROR`·loss.slope of the slope in real numbers, row by row. For with
    u = 2^−53: a margin less a label, two_sum's parts added up, is right to 2u of itself; a division
    by the ramp adds u. exp(−x) is the product of two numbers of a table (u each), a series (2u) and
    two roundings; 1/(1 + exp) and exp/(1 + exp) add two more: 10u in all. Clipping moves two
    numbers no farther apart; and what is beyond the clip is right to 10u of it, or clipped.
    """
    if isinstance(loss.base, HingeLoss):
        sign = signs(labels)
        short = _difference(np.ones(()), sign * margins, sign * rest)
        found = -sign * np.clip(short / loss.ramp, 0.0, 1.0)
    elif isinstance(loss.base, LogisticLoss):
        odds = _decay(margins, rest)
        right = (margins >= 0) == (labels > 0)
        sizes = np.where(right, odds, 1.0) / (1.0 + odds)
        found = np.where(labels > 0, -sizes, sizes)
    else:
        wrong = -_difference(labels, margins, rest)
        knee = loss.base.knee if isinstance(loss.base, HuberLoss) else math.inf
        found = np.clip(loss.base.smoothness * wrong, -knee, knee)
    return np.asarray(np.clip(found, -loss.slope, loss.slope))


def exact_slope(loss: SmoothLoss, margin: Fraction, label: Fraction, bits: int) -> Fraction:
    """Return the slope at one margin, within 2^−bits."""
    sign = 1 if label > 0 else -1
    if isinstance(loss.base, HingeLoss):
        found = -sign * min(
            max((1 - sign * margin) / Fraction(loss.ramp), Fraction(0)), Fraction(1)
        )
    elif isinstance(loss.base, LogisticLoss):
        inside = min(max(margin, Fraction(-_FARTHEST)), Fraction(_FARTHEST))
        found = -sign * _logistic(-sign * inside, bits)
    else:
        found = Fraction(loss.base.smoothness) * (margin - label)
        if isinstance(loss.base, HuberLoss):
            found = min(max(found, -Fraction(loss.base.knee)), Fraction(loss.base.knee))
    most = Fraction(loss.slope)
    return min(max(found, -most), most)


def _difference(first: Floats, second: Floats, rest: Floats) -> Floats:
    """Return first − second − rest, right to two roundings of itself."""
    whole = first - second
    back = first - whole
    lost = (first - (whole + back)) + (back - second)  # what rounding took: two_sum, exactly
    return np.asarray(whole + (lost - rest))


def _decay(margins: Floats, rest: Floats) -> Floats:
    """Return exp(−min(|margins + rest|, 32)), right to eight roundings of itself."""
    table = _table()
    sizes = np.minimum(np.abs(margins), float(_FARTHEST))
    cut = np.where(np.abs(margins) < _FARTHEST, np.where(margins < 0, -rest, rest), 0.0)
    parts = np.floor(sizes * _PARTS)
    small = (sizes - parts / _PARTS) + cut  # the difference is exact
    series = np.ones(margins.shape)
    for term in range(_TERMS, 0, -1):
        series = 1.0 - series * small / term
    whole, part = np.divmod(parts.astype(np.int64), _PARTS)
    return np.asarray(table[0][whole] * table[1][part] * series)


@lru_cache(maxsize=1)
def _table() -> tuple[Floats, Floats]:
    """Return exp(−i) for i ≤ 32 and exp(−i/64) for i < 64, each rounded once."""
    with decimal.localcontext() as context:
        context.prec = 40
        wholes = [float(decimal.Decimal(-i).exp()) for i in range(_FARTHEST + 1)]
        parts = [float((decimal.Decimal(-i) / _PARTS).exp()) for i in range(_PARTS)]
    return np.array(wholes), np.array(parts)


def _logistic(margin: Fraction, bits: int) -> Fraction:
    """Return 1/(1 + exp(−margin)) within 2^−bits, for margins within ±32."""
    with decimal.localcontext() as context:
        # An argument right to 2^−bits of itself moves the answer by 32/4 of that at the most.
        context.prec = bits * 31 // 100 + 8
        argument = decimal.Decimal(margin.numerator) / decimal.Decimal(margin.denominator)
        return Fraction(1 / (1 + (-argument).exp()))
