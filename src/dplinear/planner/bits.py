"""What so many bits a cell mean in other words: μ, (ε, δ) and (0, δ), for rows and for sketches.

    dplinear plan --bits 0.5

Cells are numbers in [−1, 1], of which one changes. Only what is proved is printed. Additive noise
is a normal law whose mean moves by at most 2. For a sketch, give the attacker the cell's own
column s of S: what is left is a normal law whose mean moves by at most 2‖s‖/σ standard deviations,
and ‖s‖² is χ² with n' degrees of freedom whatever the table, so that δ is a mean over it.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from dplinear import arguments
from dplinear.privacy.bits import variance_for
from dplinear.privacy.guarantees import GDP, MIDP, ApproxDP
from dplinear.privacy.profiles.gaussian import gaussian_delta
from dplinear.privacy.roots import smallest_private
from dplinear.privacy.rounding import up

NONE = "no theorem"
_WHERE = "compare_guarantees"
_MOST_BITS = 8.0  # at which ε is beyond 100,000
_MOST_ROWS = 10**12
_LEAST_DELTA = 1e-290  # below, δ leaves the range of floats
_TAIL = 1e-12
_QUANTILE = 1e-9  # more than the relative error of a quantile of χ²


@dataclass(frozen=True)
class CellGuarantee:
    """What one mechanism guarantees of every single cell; None where there is no theorem.

    `sigma` is the noise in each released number; `approximate` holds at the δ that was asked for;
    `total` is the (0, δ) of the mechanism itself, `from_bits` that of any mechanism of the same
    bits.
    """

    mechanism: str
    bits: MIDP
    sigma: float
    gaussian: GDP | None
    approximate: ApproxDP
    total: ApproxDP | None
    from_bits: ApproxDP | None


@dataclass(frozen=True)
class Comparison:
    """Additive noise and a sketch of `rows` rows side by side; prints as a table."""

    delta: float
    rows: int
    additive: CellGuarantee
    sketch: CellGuarantee

    @property
    def notes(self) -> tuple[str, ...]:
        """How to read it."""
        return _NOTES

    def lines(self) -> list[tuple[str, str, str]]:
        """Return the cells of the table: what, for additive noise, for the sketch."""
        whats = (
            "bits a cell",
            "noise σ",
            "μ-GDP",
            f"(ε, {self.delta:g})-DP",
            "(0, δ)-DP",
            "(0, δ)-DP by bits alone",
        )
        return list(zip(whats, _cells(self.additive), _cells(self.sketch), strict=True))

    def __str__(self) -> str:
        heads = ("", self.additive.mechanism, self.sketch.mechanism)
        rows = [heads, *self.lines()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        printed = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in rows
        ]
        rule = "─" * len(printed[0])
        return "\n".join([printed[0], rule, *printed[1:], rule, *_NOTES])

    __repr__ = __str__


_NOTES = (
    "Cells in [−1, 1], one of them changed (element neighbours).",
    "(0, δ): no event becomes likelier by more than δ; at 1 nothing is protected.",
)


def compare_guarantees(bits: float, *, delta: float = 1e-6, rows: int = 1000) -> Comparison:
    """Return what additive noise and a sketch of `rows` rows guarantee at so many bits a cell.

    Requires: `bits` in (0, 8]; `delta` in [1e-290, 1); `rows` from 1 to 10^12.
    Promises: every figure is proved and rounded to the private side.
    """
    bits = arguments.real(bits, "bits", _WHERE, low=0, high=_MOST_BITS, open_low=True)
    delta = arguments.real(delta, "delta", _WHERE, low=_LEAST_DELTA, high=1, open_high=True)
    rows = arguments.integer(rows, "rows", _WHERE, low=1, high=_MOST_ROWS)
    promised, variance = MIDP(bits), variance_for(bits)
    from_bits = promised.to(ApproxDP) if bits < 1 else None
    mu = up(2 / math.sqrt(variance))
    additive = CellGuarantee(
        "additive noise",
        promised,
        math.sqrt(variance),
        GDP(mu),
        GDP(mu).to(ApproxDP, delta=delta),
        _best(gaussian_delta(0.0, mu), from_bits),
        from_bits,
    )
    sigma = math.sqrt(up(rows * variance))
    sketch = CellGuarantee(
        f"sketch of {rows:,} row{'' if rows == 1 else 's'}",
        promised,
        sigma,
        None,
        ApproxDP(SketchMixture.of(sigma, rows, delta / 1000).epsilon(delta), delta),
        _best(SketchMixture.of(sigma, rows, _TAIL).delta(0.0), from_bits),
        from_bits,
    )
    return Comparison(delta, rows, additive, sketch)


@dataclass(frozen=True)
class SketchMixture:
    """Normal laws whose means are `mus` apart, with such `weights`, and a `tail` without any bound.

    An upper bound on what tells two neighbours' sketches apart when s is known: ‖s‖ counts as the
    largest of the step it falls into, and beyond a chance of `tail` as infinite.
    """

    weights: tuple[float, ...]
    mus: tuple[float, ...]
    tail: float

    @classmethod
    def of(cls, sigma: float, rows: int, tail: float) -> "SketchMixture":
        """Return the mixture of a sketch of `rows` rows."""
        shares = np.geomspace(0.05, tail, 2 + round(8 * math.log10(0.05 / tail)))
        probabilities = np.concatenate([np.linspace(1.0, 0.05, 39), shares[1:]])
        squares = chi2.isf(probabilities[1:], rows) * (1 + _QUANTILE)
        mus = [up(2 * math.sqrt(square) / sigma) for square in squares.tolist()]
        return cls(tuple((-np.diff(probabilities)).tolist()), tuple(mus), tail)

    def delta(self, epsilon: float) -> float:
        """Return δ at ε, rounded up."""
        pairs = zip(self.weights, self.mus, strict=True)
        total = self.tail + math.fsum(w * gaussian_delta(epsilon, mu) for w, mu in pairs)
        return up(total, 16)

    def epsilon(self, delta: float) -> float:
        """Return ε at δ, which must be above the tail, rounded up."""
        if self.delta(0.0) <= delta:
            return 0.0
        return smallest_private(self.delta, delta, 1.0, within=1e-9)


def _best(delta: float, other: ApproxDP | None) -> ApproxDP | None:
    """Return (0, δ) for the smaller δ; None where it is not below 1."""
    if other is not None and other.delta < delta:
        return other
    return ApproxDP(0.0, delta) if delta < 1 else None


def _cells(each: CellGuarantee) -> list[str]:
    return [
        f"{each.bits.bits:g}",
        f"{each.sigma:.4g}",
        NONE if each.gaussian is None else f"μ = {each.gaussian.mu:.4g}",
        f"ε = {each.approximate.epsilon:.4g}",
        *(NONE if d is None else f"δ = {d.delta:.4g}" for d in (each.total, each.from_bits)),
    ]
