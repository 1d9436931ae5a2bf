"""Audits of mechanisms that release second moments.

Runs are made many at a time where the law allows it: a table of several copies of the worst pair,
each in columns of its own. The blocks of such a release are independent and each has the law of a
release of its own pair: normal noise is independent anyway, diagonal blocks of a Wishart matrix
with a block-diagonal scale are independent, and so are those of the inverse of an inverse-Wishart
draw.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from dplinear.analyst.noise_models.matrices import InverseWishartNoise
from dplinear.arrays import Floats
from dplinear.audit import densities, worst_pairs
from dplinear.audit.subjects.contract import Claim, Subject, refusal
from dplinear.exact.shape import Shape
from dplinear.mechanisms.contract import Measurement, MomentsMechanism, PreparedMoments
from dplinear.mechanisms.moments.additive_wishart import PreparedWishart
from dplinear.mechanisms.moments.analyze_gauss import AnalyzeGauss, PreparedGauss
from dplinear.mechanisms.moments.inverse_wishart import PreparedInverse
from dplinear.mechanisms.moments.ridged import Fixed
from dplinear.mechanisms.moments.sketch import PreparedSketch
from dplinear.noise.entropy import Entropy
from dplinear.privacy.neighbours import Neighbours

SHAPE = Shape(2, 724, 10)  # two columns in [−1, 1], on a small grid
_MOST_COPIES = 12


class MatrixSubject(Subject):
    """A second-moment mechanism on an axis row that comes and goes, or turns by a right angle.

    Requires: a release whose law has a density in `densities.py`. `oblique` turns both tables by
    half a right angle, which tells the same of every law here. `base` rows along each axis are in
    both tables.
    """

    def __init__(
        self,
        mechanism: MomentsMechanism,
        shape: Shape = SHAPE,
        *,
        oblique: bool = False,
        base: int = 0,
    ) -> None:
        self.name = mechanism.name
        self.guarantee, self.neighbours = mechanism.guarantee, mechanism.neighbours
        normal = isinstance(mechanism, AnalyzeGauss)
        self.claim = Claim.of(self.guarantee, normal=normal)
        # Of a replaced row behind Wishart noise only a bound on the curve is claimed.
        wishart = mechanism.name == "additive_wishart"
        self.exact = not (wishart and self.neighbours is Neighbours.REPLACE)
        self.chosen = not self.exact
        prepared = mechanism.prepare(shape)
        self._prepared, self._copies = _wide(prepared, shape)
        pair = worst_pairs.matrix_pair(shape, self.neighbours, oblique=oblique, base=base)
        self._tables = [worst_pairs.moments(shape, rows, self._copies) for rows in pair]
        self._grams = [worst_pairs.moments(shape, rows, 1).matrix() for rows in pair]

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Measure, and compare likelihoods."""
        table = self._tables[other]
        runs = -(-count // self._copies)
        measured = [self._prepared.run(table, entropy) for _ in range(runs)]
        return np.concatenate([self._losses(one) for one in _by_noise_model(measured)])[:count]

    def _losses(self, measured: "list[Measurement]") -> Floats:
        noise_model = measured[0].noise_model
        density = densities.BY_NOISE_MODEL.get(type(noise_model))
        if density is None:
            raise refusal("mechanism", "one whose releases have a known density", noise_model.kind)
        d = len(self._grams[0])
        stacked = np.stack([_moments(one, d * self._copies) for one in measured])
        blocks = _blocks(stacked, d, inverse=isinstance(noise_model, InverseWishartNoise))
        return density(blocks, self._grams[0], self._grams[1], noise_model)


def _by_noise_model(measured: "list[Measurement]") -> "list[list[Measurement]]":
    """Return the measurements in groups of one law; nearly always there is but one."""
    groups: dict[Any, list[Measurement]] = {}
    for one in measured:
        groups.setdefault(one.noise_model, []).append(one)
    return list(groups.values())


def _wide(prepared: PreparedMoments, shape: Shape) -> tuple[PreparedMoments, int]:
    """Return the mechanism for several copies, calibrated as it is, and how many there are."""
    match prepared:
        case PreparedGauss():
            copies = _MOST_COPIES
        case PreparedWishart(degrees=degrees):
            copies = int(degrees) // shape.dimension
        case PreparedSketch(ready=Fixed()):
            copies = _MOST_COPIES
        case PreparedInverse(ready=Fixed(setting=setting)):
            copies = (setting.degrees - 2) // shape.dimension
        case _:
            return prepared, 1
    copies = max(min(copies, _MOST_COPIES), 1)
    wide = Shape(shape.dimension * copies, shape.steps_per_unit, shape.exponent)
    return replace(prepared, shape=wide), copies


def _moments(measurement: Measurement, dimension: int) -> Floats:
    """Return the released matrix, that of its rows if it is a sketch."""
    values = measurement.values
    if measurement.parameters.get("release") == "sketch":
        return np.asarray(values.T @ values / len(values))
    return values[:dimension, :dimension]


def _blocks(stacked: Floats, d: int, *, inverse: bool) -> Floats:
    """Return the diagonal blocks of each matrix, or the inverses of those of its inverse."""
    if stacked.shape[-1] == d:
        return stacked
    whole = np.linalg.inv(stacked) if inverse else stacked
    starts = range(0, whole.shape[-1], d)
    blocks = np.concatenate([whole[:, s : s + d, s : s + d] for s in starts])
    return np.linalg.inv(blocks) if inverse else blocks
