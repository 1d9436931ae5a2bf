"""Ways to make rows private, as floating-point replicas of the library's exact ones.

For simulation only: what protects rows is drawn on an integer grid, by `mechanisms/`. All ways see
the same projection and the same standard draws, so that differences are due to the scales alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dplinear.analyst.rows.distance_errors import DistanceErrorModel
from dplinear.arrays import Floats
from dplinear.mechanisms.rows.operator_norms import sign_norm
from dplinear.noise.simulation import Generator
from dplinear.papers import constants
from dplinear.papers.dhaliwal.design import DELTA, EPSILON
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.half_normals import half_normal_quantile


@dataclass(frozen=True)
class Technique:
    """How rows are released: `scale` maps the projection to Laplace's or the normal law's scale."""

    name: str
    noise: str
    scale: Callable[[Floats], float]
    projection: str = "gaussian"

    def scales(self, projections: Floats) -> Floats:
        """Return the scale for each of many projections, of shape (..., dimension, k)."""
        if self.scale is exact_after:  # fast, as a million are drawn
            return np.asarray(np.abs(projections).sum(-1).max(-1) / EPSILON)
        flat = projections.reshape(-1, *projections.shape[-2:])
        fixed = self.scale in {paper_cells, paper_rows, quantile_rows, exact_before, normal_before}
        found = [self.scale(each) for each in (flat[:1] if fixed else flat)]
        return np.broadcast_to(np.reshape(found, -1), len(flat)).reshape(projections.shape[:-2])


@dataclass(frozen=True, eq=False)
class Draws:
    """What a release draws: projections and standard noise, the same for every technique."""

    projections: dict[str, Floats]
    noise: dict[str, Floats]

    @classmethod
    def of(cls, rows: int, dimension: int, k: int, generator: Generator) -> "Draws":
        """Draw for a table of so many rows."""
        normal = generator.standard_normal((dimension, k)) / math.sqrt(k)
        columns, triangle = np.linalg.qr(normal)
        columns *= np.sign(np.diag(triangle)) * math.sqrt(dimension / k)
        noise = {
            "laplace": generator.laplace(0, 1, (rows, k)),
            "gaussian": generator.standard_normal((rows, k)),
            "perturbed": generator.laplace(0, 1, (rows, dimension)),
            "perturbed gaussian": generator.standard_normal((rows, dimension)),
        }
        return cls({"gaussian": normal, "orthonormal": columns}, noise)

    def release(self, rows: Floats, technique: Technique) -> tuple[Floats, DistanceErrorModel]:
        """Return the released rows, and how their distances spread."""
        projection = self.projections[technique.projection]
        dimension, k = projection.shape
        scale = technique.scale(projection)
        noise = scale * self.noise[technique.noise]
        variance = scale**2 * (1 if technique.noise.endswith("gaussian") else 2)
        if technique.noise.startswith("perturbed"):
            released = (rows + noise) @ projection
            variance *= float((projection**2).sum()) / k
        else:
            released = rows @ projection + noise
        error_model = DistanceErrorModel(
            technique.noise, k, dimension, variance, technique.projection
        )
        return released, error_model


def _longest(projection: Floats, order: int) -> float:
    return float(np.linalg.norm(projection, order, axis=1).max())


def paper_cells(projection: Floats) -> float:
    """Return 2√k/ε (Theorem 3)."""
    return constants.projected_rows(*projection.shape).value / EPSILON


def paper_rows(projection: Floats) -> float:
    """Return k·√(2 ln(2k)/k)/ε (Theorem 5)."""
    return constants.projected_whole_rows(projection.shape[1]).value / EPSILON


def exact_after(projection: Floats) -> float:
    """Return maxᵢ‖Pᵢ‖₁/ε: a cell, or a row in L1, changes by at most 1."""
    return _longest(projection, 1) / EPSILON


def exact_rows(projection: Floats) -> float:
    """Return max over signs s of ‖Ps‖₂/ε: a row changes by at most 1 in L2."""
    return sign_norm(projection) / EPSILON


def quantile_rows(projection: Floats) -> float:
    """Return the 1 − δ quantile of ‖vP‖₁ for |v|₂ = 1, over ε: what P was drawn plays no part."""
    k = projection.shape[1]
    return _quantile(k) / math.sqrt(k) / EPSILON


@lru_cache
def _quantile(k: int) -> float:
    return half_normal_quantile(k, DELTA)


def exact_before(projection: Floats) -> float:  # noqa: ARG001 - whatever was drawn
    """Return 1/ε: noise comes before the projection."""
    return 1 / EPSILON


def normal_after(projection: Floats) -> float:
    """Return the deviation of normal noise after the projection, for ε and δ."""
    return _longest(projection, 2) * _unit_normal()


def normal_before(projection: Floats) -> float:  # noqa: ARG001 - whatever was drawn
    """Return the deviation of normal noise before the projection, for ε and δ."""
    return _unit_normal()


@lru_cache(maxsize=1)
def _unit_normal() -> float:
    return calibrate.gaussian(ApproxDP(EPSILON, DELTA), 1.0)


PROJECTED = Technique("projection alone, not private", "gaussian", lambda _: 1e-9)
PAPER_CELLS = Technique("paper, one cell", "laplace", paper_cells)
PAPER_ROWS = Technique("paper, one row", "laplace", paper_rows)
AFTER = Technique("ε = 4, noise after P", "laplace", exact_after)
BEFORE = Technique("ε = 4, noise before P", "perturbed", exact_before)
BEFORE_ORTHONORMAL = Technique(
    "ε = 4, noise before orthonormal P", "perturbed", exact_before, "orthonormal"
)
ROWS_L2 = Technique("ε = 4, rows in L2", "laplace", exact_rows)
ROWS_L2_QUANTILE = Technique("δ = 1e-6, rows in L2", "laplace", quantile_rows)
NORMAL_AFTER = Technique("δ = 1e-6, noise after P", "gaussian", normal_after)
NORMAL_BEFORE = Technique("δ = 1e-6, noise before P", "perturbed gaussian", normal_before)
TECHNIQUES = (
    PROJECTED,
    PAPER_CELLS,
    PAPER_ROWS,
    AFTER,
    BEFORE,
    BEFORE_ORTHONORMAL,
    ROWS_L2,
    NORMAL_AFTER,
    NORMAL_BEFORE,
    ROWS_L2_QUANTILE,
)
