"""The six techniques of Sheffet 2015, §6, under both calibrations, and the errors they make."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dplinear.analyst.noise_models.matrices import NoiseModel
from dplinear.analyst.regression.least_squares import solve
from dplinear.analyst.regression.repair import repair_matrix
from dplinear.arrays import Floats
from dplinear.exact.shape import Statistic
from dplinear.mechanisms.contract import PreparedMoments
from dplinear.noise import simulation
from dplinear.papers.sheffet import published
from dplinear.papers.sheffet.design import REDUNDANT, Design
from dplinear.privacy.guarantees import ApproxDP
from dplinear.registry import MOMENTS

EPSILON = 0.1
DELTA = 1e-6
KINDS = {"exact": MOMENTS.own, "paper": published.MECHANISMS}
CALIBRATIONS = tuple(KINDS)


class Technique(NamedTuple):
    """A mechanism of the library and what the analyst does with its matrix."""

    name: str
    mechanism: str
    repair: str


ANALYZE_GAUSS = Technique("Analyze Gauss", "analyze_gauss", "none")
SKETCH = Technique("JL sketch", "sketch", "released")
WISHART = Technique("additive Wishart", "additive_wishart", "released")
SCALED_GAUSS = Technique("scaled Analyze Gauss", "analyze_gauss", "scaled")
INVERSE = Technique("inverse-Wishart", "inverse_wishart", "released")
SCALED_WISHART = Technique("scaled additive Wishart", "additive_wishart", "scaled")
# In the paper's order, in which techniques 2 and 5 have 2d degrees of freedom (its footnote 7).
TECHNIQUES = (ANALYZE_GAUSS, SKETCH, WISHART, SCALED_GAUSS, INVERSE, SCALED_WISHART)
# The box of Algorithm 3 has n + d degrees instead; n is private, so this has no exact counterpart.
POSTERIOR = Technique("inverse-Wishart, ν = n + d", "posterior", "released")


@dataclass(frozen=True, eq=False)
class Bench:
    """A design, and every mechanism calibrated for it, once."""

    design: Design
    prepared: Mapping[tuple[str, str], PreparedMoments]

    @classmethod
    def of(cls, design: Design) -> "Bench":
        """Prepare the library's mechanisms under both calibrations."""
        return cls(design, dict(_prepare_all(design)))

    def errors(self, statistic: Statistic, seed: int) -> dict[tuple[str, Technique], Floats]:
        """Release one table's moments in every way, and return |β̃ − β|/|β| for each of REDUNDANT.

        Both calibrations draw their noise from the same seed, the same for each mechanism.
        """
        found = {}
        for (calibration, mechanism), prepared in self.prepared.items():
            measured = prepared.run(statistic, simulation.entropy(seed))
            for technique in (*TECHNIQUES, POSTERIOR):
                if technique.mechanism == mechanism:
                    found[calibration, technique] = np.array(
                        [
                            error(
                                self.design,
                                measured.values,
                                measured.noise_model,
                                technique,
                                redundant,
                            )
                            for redundant in REDUNDANT
                        ]
                    )
        return found


def error(
    design: Design, values: Floats, noise_model: NoiseModel, technique: Technique, redundant: int
) -> float:
    """Return |β̃ − β|/|β| of one regression on a released matrix, in the columns' own units."""
    indices = design.indices(redundant)
    corner = np.ix_(indices, indices)
    estimate = repair_matrix(
        values, noise_model, technique.repair, used=indices, delta=DELTA
    ).matrix[corner]
    solution = solve(estimate[:-1, :-1], estimate[:-1, -1:])
    coefficients = solution.coefficients[:, 0] * design.readout(redundant)
    truth = design.truth(redundant)
    return float(np.linalg.norm(coefficients - truth) / np.linalg.norm(truth))


def guarantee() -> ApproxDP:
    """Return the paper's ε with our δ."""
    return ApproxDP(EPSILON, DELTA)


def options(design: Design, mechanism: str) -> dict[str, Any]:
    """Return what a mechanism is told beside its guarantee: the degrees of footnote 7."""
    return {"degrees": 2 * design.dimension} if mechanism == "inverse_wishart" else {}


def _prepare_all(design: Design) -> Iterator[tuple[tuple[str, str], PreparedMoments]]:
    for calibration, kinds in KINDS.items():
        for name, kind in kinds.items():
            mechanism = kind(guarantee=guarantee(), **options(design, name))
            yield (calibration, name), mechanism.prepare(design.shape)
    posterior = published.PublishedInverseWishart(guarantee=guarantee())
    yield ("paper", POSTERIOR.mechanism), posterior.prepare(design.shape)
