"""From simulated tables that look real to a law for each mechanism and shape of target."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import least_squares as fit_least_squares
from scipy.special import expit

from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.planner.contest import NAMES, Contest
from dplinear.planner.errors.curves import Size, abscissa, chi_square_median
from dplinear.planner.errors.real_like_errors import (
    COVARIATES,
    NODES,
    Looks,
    covariates,
    is_whole,
)
from dplinear.planner.facts import effective_mu
from dplinear.planner.forecast import FLOOR, least_squares
from dplinear.planner.populations import seed_of
from dplinear.planner.real_like import TARGETS, Likeness, RealLike
from dplinear.privacy.guarantees import ApproxDP

DELTA = 1e-6
MEMBERS = 320
BUDGETS = 3  # of one table
EPSILONS = (0.1, 10.0)
COLUMNS, ROWS = (2.5, 110.0), (400.0, 60_000.0)
MANY, MANY_ROWS, FEW_COLUMNS = 16, 250_000.0, 10.0  # every so many members is large
MOST_CELLS = 1_200_000
_ROBUST = 0.4  # errors of logarithms beyond which a table counts for less
_SMOOTH, _SMALL = 0.2, 0.1
_FIXED = 30.0
# How much it costs to tell real tables from simulated ones; of one shape there are few of them.
_KIND, _KIND_OF_SHAPE = 1.0, 5.0
_TOP = 0.5  # how much the height of the first node counts, where noise hides all
_STEEPEST = 1.5  # of a curve, between two nodes
_FLAT = 0.0  # log10 of x, below which noise hides all
_REACH = 1.645


@dataclass(frozen=True)
class RealSpot:
    """One population that looks real, with one table of it, fitted at several budgets."""

    member: int


@dataclass(frozen=True)
class Simulated:
    """What came of one mechanism on one table at one budget."""

    size: Size
    looks: Looks
    width: float
    floor: float
    excess: float
    weight: float = 1.0
    simulated: bool = True


def real_spots(members: int) -> list[RealSpot]:
    """Return all populations."""
    return [RealSpot(member) for member in range(members)]


@cache
def _contest(columns: int, epsilon: float) -> Contest:
    return Contest.of(columns, ApproxDP(epsilon, DELTA))


def _between(ends: tuple[float, float], generator: simulation.Generator) -> float:
    low, high = (math.log(end) for end in ends)
    return math.exp(generator.uniform(low, high))


def simulate_real(spot: RealSpot) -> dict[str, Any]:
    """Return facts of one table that looks real, and the excess risk of each method on it."""
    seed = seed_of("real table", spot.member)
    generator = simulation.generator(seed)
    large = spot.member % MANY == MANY - 1
    columns = round(_between((COLUMNS[0], FEW_COLUMNS) if large else COLUMNS, generator))
    rows = _between((ROWS[1], MANY_ROWS) if large else ROWS, generator)
    rows = round(min(rows, MOST_CELLS / columns * (3 if large else 1)))
    # By turns of the shape, but so that large tables have every shape, too.
    target = TARGETS[(spot.member + spot.member // MANY) % len(TARGETS)]
    likeness = Likeness(columns, float(generator.uniform(0.1, 0.9)), target)
    population = RealLike.draw(likeness, generator)
    table = population.table(rows, generator)
    fits = []
    for step in range(BUDGETS):
        low, high = EPSILONS
        epsilon = low * (high / low) ** ((step + generator.uniform()) / BUDGETS)
        epsilon = float(f"{epsilon:.3g}")
        lines = _contest(columns, epsilon).lines(table, seed_of(seed, epsilon), NAMES)
        risks = {name: float(f"{population.excess(line):.4g}") for name, line in lines.items()}
        fits.append({"epsilon": epsilon, "risks": risks})
    plain = population.excess(least_squares(table, population.design))
    return {
        "columns": columns,
        "rows": rows,
        "zero_one": round(likeness.zero_one, 3),
        "target": target,
        "explained": float(f"{population.explained:.4g}"),
        "target_width": float(f"{population.target_width:.4g}"),
        FLOOR: float(f"{plain:.4g}"),
        "fits": fits,
    }


def real_content(
    lines: Sequence[dict[str, Any]], tables: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return the laws as plain JSON, of simulated tables and of medians over real ones, if any."""
    mus = {fit["epsilon"]: _mu(fit["epsilon"]) for line in lines for fit in line["fits"]}
    reached = [
        line["rows"] * mus[fit["epsilon"]] / (line["columns"] + 1)
        for line in lines
        for fit in line["fits"]
    ]
    every = [*lines, *tables]
    own = {target: [line for line in every if line["target"] == target] for target in TARGETS}
    widths = {
        target: float(np.median([line["target_width"] for line in found]))
        for target, found in own.items()
    }
    factors = {target: _floor_factor(found) for target, found in own.items()}
    return {
        "tables": len(lines),
        "real tables": len(tables),
        "targets": list(TARGETS),
        "most_columns": max(line["columns"] for line in lines),
        "most_x": float(f"{max(reached):.3g}"),
        "widths": {target: round(width, 2) for target, width in widths.items()},
        "factors": factors,
        "laws": {name: _laws(name, own, factors) for name in NAMES},
    }


def _laws(
    name: str, own: dict[str, list[dict[str, Any]]], factors: dict[str, float]
) -> dict[str, Any]:
    """Return the laws of one mechanism: one for each shape, or of whole matrices one for all."""
    found = {target: _gather(name, lines, factors[target]) for target, lines in own.items()}
    if is_whole(name):
        return dict.fromkeys(found, _fit(name, [one for each in found.values() for one in each]))
    return {target: _fit(name, each) for target, each in found.items()}


def _mu(epsilon: float) -> float:
    return effective_mu(ApproxDP(epsilon, DELTA))


def _law_of_sampling(line: dict[str, Any]) -> float:
    columns, rows = line["columns"], line["rows"]
    mean = chi_square_median(columns + 1) / max(rows - columns - 2, 1)
    return float((1 / line["explained"] - 1) * mean)


def _floor_factor(lines: Sequence[dict[str, Any]]) -> float:
    """Return how much larger least squares errs than with even errors."""
    ratios = [line[FLOOR] / _law_of_sampling(line) for line in lines]
    return round(float(np.exp(np.median(np.log(ratios)))), 3)


def _gather(name: str, lines: Sequence[dict[str, Any]], factor: float) -> list[Simulated]:
    return [
        Simulated(
            Size(line["rows"], line["columns"], _mu(fit["epsilon"]), line["columns"] + 2.0),
            Looks(line["target"], line["explained"], line["zero_one"]),
            line["target_width"],
            min(factor * _law_of_sampling(line), 1.0),
            fit["risks"][name],
            line.get("weight", 1.0),
            "name" not in line,
        )
        for line in lines
        for fit in line["fits"]
        if name in fit["risks"]
    ]


def _fit(name: str, found: Sequence[Simulated]) -> dict[str, Any]:
    """Fit a falling curve and the powers that move it, to logarithms, outliers counting less."""
    moves = np.array(
        [
            covariates(name, one.size.columns, one.looks, one.width, simulated=one.simulated)
            for one in found
        ]
    )
    places = np.log10([abscissa(name, one.size) for one in found])
    floors = np.array([one.floor for one in found])
    came = np.log([max(one.excess, 1e-12) for one in found])
    weights = np.array([one.weight for one in found])
    size, top = len(COVARIATES), 2 * len(COVARIATES)

    def curve(parameters: Floats) -> Floats:
        drops = _STEEPEST * expit(parameters[top + 1 :])
        return np.asarray(parameters[top] - np.concatenate([[0.0], np.cumsum(drops)]))

    def misses(parameters: Floats) -> Floats:
        at = np.interp(places - moves @ parameters[:size], NODES, curve(parameters))
        at = at + moves @ parameters[size:top]
        return np.asarray(np.log(floors + 10**at) - came)

    def losses(parameters: Floats) -> Floats:
        bends = parameters[top + 1 :]
        smooth = np.concatenate([_SMOOTH * np.diff(bends), _SMALL * (bends - usual)])
        first = _TOP * (parameters[top : top + 1] - start[top])
        powers = np.concatenate([held * parameters[:size], height * held * parameters[size:top]])
        return np.concatenate([weights * misses(parameters), smooth, first, powers])

    whole = is_whole(name)
    held = np.array([_SMALL] * (size - 1) + [_KIND if whole else _KIND_OF_SHAPE])
    height = 1.0 if whole else _FIXED  # where noise hides all, descents are flat lines
    usual = np.where(NODES[:-1] < _FLAT, -3.0, 0.0)  # where no table is: flat, then as 1/x
    start = np.concatenate([np.zeros(top), [0.3], usual])
    best = fit_least_squares(losses, start, loss="soft_l1", f_scale=_ROBUST).x
    spread = float(np.quantile(np.abs(misses(best)), 0.9)) / _REACH
    return {
        "curve": [round(float(value), 3) for value in curve(best)],
        "powers": [round(float(value), 3) for value in best[:size]],
        "heights": [round(float(value), 3) for value in best[size:top]],
        "spread": round(spread, 3),
    }
