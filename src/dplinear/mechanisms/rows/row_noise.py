"""Noise for projected rows, in four places: each calibrated on public facts and the matrix drawn.

| kind | noise | scaled by |
|---|---|---|
| `laplace` | Laplace, on XA | the largest ‖vA‖₁ of any change v: pure ε, whatever is known of A |
| `quantile` | Laplace, on XA | what ‖vA‖₁ exceeds with probability δ, for a Gaussian A |
| `gaussian` | Gaussian, on XA | the largest ‖vA‖₂ |
| `perturbed` | Laplace, on X before it is projected | the largest ‖v‖₁ |
| `perturbed gaussian` | Gaussian, on X before it is projected | the largest ‖v‖₂ |

All are drawn exactly on a grid. docs/theory/projected-rows.md has the proofs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dplinear import arguments
from dplinear.mechanisms import checks
from dplinear.mechanisms.rows.row_changes import Changes
from dplinear.mechanisms.rows.row_maps import RowMap, grid_cost
from dplinear.noise import discrete
from dplinear.noise.discrete import Integers
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.half_normals import half_normal_quantile
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles import Profile, Pure
from dplinear.privacy.profiles.gaussian import GRID_LEAST_VARIANCE, GridGaussian
from dplinear.privacy.profiles.joined import WithFailure
from dplinear.privacy.rounding import ceiling, root_ceiling, up

CHOICES = ("auto", "laplace", "quantile", "gaussian", "perturbed")
_LARGEST = (
    2.0**48
)  # of scales, in steps of the grid: so no sum of a product and noise needs 63 bits
_COARSEST = 200
_WHERE = "ProjectedRows"


@dataclass(frozen=True)
class RowNoise:
    """Independent draws of one law, in units of 2^`step` of the grid.

    `kind` is one of the table above; `scale` is Laplace's, or the standard deviation; `total` is
    the noise's variance summed over the k released numbers, in squared units of XA.
    """

    kind: str
    scale: float
    step: int
    total: float
    profile: Profile

    @property
    def before(self) -> bool:
        """Whether the noise comes before the projection."""
        return self.kind.startswith("perturbed")

    @property
    def normal(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.kind.endswith("gaussian")

    def draw(self, shape: tuple[int, int], entropy: Entropy) -> Integers:
        """Return fresh noise."""
        exact = Fraction(self.scale)
        if self.normal:
            return discrete.gaussian(exact**2, shape, entropy=entropy)
        return discrete.laplace(exact, shape, entropy=entropy)


@dataclass(frozen=True)
class Setting:
    """What noise is calibrated for: all public but the matrix, which does not depend on a row."""

    guarantee: Guarantee
    relation: Neighbours
    changes: Changes
    rows: RowMap

    def noise(self, kind: str) -> RowNoise | None:
        """Return the noise of a kind, or None where the guarantee has none of it."""
        made = {
            "laplace": self._laplace,
            "quantile": self._quantile,
            "gaussian": self._gaussian,
            "perturbed": self._perturbation,
            "perturbed gaussian": self._perturbed_gaussian,
        }
        return made[kind]()

    def best(self, choice: str, trial: RowMap | None = None) -> RowNoise:
        """Return the noise of least total variance among those that are allowed.

        Requires: for "auto", a `trial` matrix of the same law, drawn for this alone. It decides on
        "quantile" noise, whose δ is a chance that the released matrix is a bad one: were that
        matrix asked, bad ones would be chosen more often. All others hold for each matrix.
        """
        kinds: tuple[str, ...] = (choice,)
        if choice == "perturbed":
            kinds = ("perturbed", "perturbed gaussian")
        elif choice == "auto":
            kinds = ("laplace", "perturbed", "gaussian", "perturbed gaussian")
            quantile = None if trial is None else self.noise("quantile")
            if trial is not None and quantile is not None:
                others = replace(self, rows=trial).candidates(kinds)
                if quantile.total < min(map(_total, others), default=math.inf):
                    return quantile
        found = self.candidates(kinds)
        if not found:
            hint = {
                "quantile": "it needs an ApproxDP guarantee and a Gaussian projection.",
                "gaussian": f"{checks.ADD_DELTA}: normal noise has an unbounded privacy loss.",
                "laplace": "Laplace noise is for PureDP or ApproxDP.",
            }.get(choice, "ask for PureDP, ApproxDP or ZCDP, and a larger ε or ρ.")
            rule = f"one that noise {choice!r} can keep"
            raise arguments.rejection("guarantee", _WHERE, rule, self.guarantee, hint)
        return min(found, key=_total)

    def candidates(self, kinds: Sequence[str]) -> list[RowNoise]:
        """Return the noises of these kinds that the guarantee has."""
        return [noise for noise in map(self.noise, kinds) if noise is not None]

    @property
    def _epsilon(self) -> float | None:
        if isinstance(self.guarantee, PureDP | ApproxDP) and self.guarantee.epsilon > 0:
            return self.guarantee.epsilon
        return None

    def _laplace(self) -> RowNoise | None:
        if self._epsilon is None:
            return None
        return self.laplace_noise(self.changes.image_l1(self.rows.integers), self._epsilon)

    def laplace_noise(self, distance: float, epsilon: float) -> RowNoise | None:
        """Return Laplace noise that is ε-DP for images at most `distance` apart in L1."""
        for step in range(0, _COARSEST, 4):
            # Rounding to a coarser grid moves each of k differences by less than a step.
            moved = self.rows.k if step else 0
            reach = ceiling(Fraction(distance) / (1 << step) + moved)
            scale = calibrate.laplace(PureDP(epsilon), reach)
            if scale <= _LARGEST:
                loss = ceiling(Fraction(reach) / Fraction(scale))
                total = 2 * self.rows.k * scale**2 * 4.0**step
                return RowNoise("laplace", scale, step, total, Pure(loss, self.relation))
        return None

    def _quantile(self) -> RowNoise | None:
        if not isinstance(self.guarantee, ApproxDP) or self.rows.kind != "gaussian":
            return None
        failure = self.guarantee.delta - grid_cost(self.rows.dimension, self.rows.k)
        if self._epsilon is None or failure <= self.guarantee.delta / 2:
            return None
        # A rounded entry is half a step from a normal one: ‖vA‖₁ ≤ 2^digits·‖v‖·Σ|g| + k‖v‖₁/2.
        normal = half_normal_quantile(self.rows.k, failure) * 2.0**self.rows.digits
        distance = up(self.changes.l2 * normal + self.rows.k * self.changes.l1 / 2, 8)
        noise = self.laplace_noise(distance, self._epsilon)
        if noise is None:
            return None
        profile = WithFailure(noise.profile, self.guarantee.delta)
        return RowNoise("quantile", noise.scale, noise.step, noise.total, profile)

    def _gaussian(self) -> RowNoise | None:
        if not self._has_gaussian:
            return None
        distance, k = self.changes.image_l2(self.rows.integers), self.rows.k
        for step in range(0, _COARSEST, 4):
            moved = math.sqrt(k) if step else 0.0
            found = self._normal(up(distance / 2.0**step + moved), k)
            if found is not None:
                scale, profile = found
                return RowNoise("gaussian", scale, step, k * scale**2 * 4.0**step, profile)
        return None

    def _perturbation(self) -> RowNoise | None:
        if self._epsilon is None:
            return None
        scale = calibrate.laplace(PureDP(self._epsilon), self.changes.l1)
        if scale > _LARGEST:
            return None
        loss = ceiling(Fraction(self.changes.l1) / Fraction(scale))
        total = 2 * scale**2 * self._squares
        return RowNoise("perturbed", scale, 0, total, Pure(loss, self.relation))

    def _perturbed_gaussian(self) -> RowNoise | None:
        if not self._has_gaussian:
            return None
        found = self._normal(self.changes.l2, self.rows.dimension)
        if found is None:
            return None
        scale, profile = found
        return RowNoise("perturbed gaussian", scale, 0, scale**2 * self._squares, profile)

    @property
    def _has_gaussian(self) -> bool:
        if isinstance(self.guarantee, ApproxDP):
            return self.guarantee.delta > 0
        return isinstance(self.guarantee, ZCDP)

    @property
    def _squares(self) -> float:
        return float(np.sum(self.rows.integers**2))

    def _normal(self, distance: float, coordinates: int) -> tuple[float, GridGaussian] | None:
        """Return the least standard deviation, and its profile; None if it is too large."""
        scale = math.sqrt(GRID_LEAST_VARIANCE)
        profile = self._profile(scale, distance, coordinates)
        if not profile.keeps(self.guarantee):
            variance = calibrate.grid_gaussian(self.guarantee, distance, coordinates)
            scale = root_ceiling(Fraction(variance))
            profile = self._profile(scale, distance, coordinates)
        return None if scale > _LARGEST else (scale, profile)

    def _profile(self, scale: float, distance: float, coordinates: int) -> GridGaussian:
        mu = ceiling(Fraction(distance) / Fraction(scale))
        inverse = ceiling(coordinates / Fraction(scale) ** 2)
        return GridGaussian(mu, inverse, self.relation)


def _total(noise: RowNoise) -> float:
    return noise.total
