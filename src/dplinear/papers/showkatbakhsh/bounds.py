"""What Theorems 1 and 2 say of a table of Figure 1, where its y carries no noise."""

import math

import numpy as np

from dplinear.noise import simulation
from dplinear.papers.showkatbakhsh import tables
from dplinear.papers.showkatbakhsh import theorems as bits_theorems
from dplinear.papers.showkatbakhsh.draws import Sums
from dplinear.papers.showkatbakhsh.schemes import (
    ADDITIVE,
    PAPER,
    PROJECTIONS,
    PUBLIC,
    Setting,
    noise_for,
)
from dplinear.papers.showkatbakhsh.study import Plan, trial_seed
from dplinear.papers.showkatbakhsh.theorems import ErrorBound, Problem

FAILURE = 0.01


def problem_of(sums: Sums) -> Problem:
    """Return the problem as the theorems see it, from the Gram matrix."""
    squares = np.linalg.eigvalsh(sums.gram[:-1, :-1])
    least = sums.loss(sums.best())
    ratio = math.sqrt(float(sums.gram[-1, -1]) / least - 1)
    return Problem(sums.rows, tuple(np.sqrt(squares).tolist()), ratio)


def error_bounds(plan: Plan, seed: int) -> dict[tuple[str, str], ErrorBound]:
    """Return bounds for one table of the linear model, k = `plan.middle`."""
    source = simulation.generator(trial_seed(seed, 1, 0))
    *_, last = tables.growing(plan.unit, plan.features, plan.middle, source)
    sums, setting = last[tables.SIGNAL], Setting(plan.bits, plan.unit, plan.middle)
    problem = problem_of(sums)
    slack = bits_theorems.additive_noise_slack(problem, plan.bits, FAILURE)
    found = {(ADDITIVE, PUBLIC): bits_theorems.additive_noise_error(problem, plan.bits, slack)}
    for calibration in (PAPER, PUBLIC):
        for scheme in PROJECTIONS:
            own = setting.sketch_rows(scheme, sums.rows)
            noise = noise_for(calibration, plan.bits, own, sums.sum_of_squares).features
            bound = bits_theorems.projection_error_exact(problem, noise, own, FAILURE)
            found[scheme, calibration] = bound
    return found
