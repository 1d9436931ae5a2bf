"""Which learner, and how many dimensions, for a model in a constraint set: from public facts alone.

A rule of thumb in closed form, so that choosing costs nothing, made for rows of many features of
which few matter. Noise added to gradients is as large for each feature after a projection as
without one, so a projection never helps those learners; it only saves room.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dplinear import arguments
from dplinear.convex.compression import theorems
from dplinear.convex.learners.common import USUAL_ROWS
from dplinear.convex.sets import ConvexSet, L1Ball, L2Ball, Simplex
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP

GRADIENT_DIMENSION = 1_000  # the more the better, as room allows
DIRECT_DIMENSION = 50  # of learners whose noise has the length of its dimension
WHITENED_DIMENSION = 100  # of whose Gram matrix noise leaves something
DIRECT = ("output_perturbation", "objective_perturbation", "whitened")
_FAILURE = 0.05  # the chance that the theorems leave themselves
_ENOUGH, _ENOUGH_FOR_HINGE = 3_500.0, 2_000.0  # rows·μ for noisy gradients
_GRADIENT_STEPS = (5, 30)
_HINGE_STEPS, _HINGE_RATE = (15, 30), 24.0
_SHORT_STEPS = (1, 20)  # of Frank-Wolfe where rows are few: it stays near where it began
_FREE_STEPS = (60, 200)  # where they are many: it goes as far as it likes


@dataclass(frozen=True)
class Situation:
    """What is public about a problem.

    `rows` is the order of magnitude of their number, `dimension` that of the set, `listed` whether
    the set has extreme points that can be listed, `loss` a loss's name.
    """

    dimension: int
    guarantee: Guarantee
    loss: str
    listed: bool
    rows: float | None = None

    @property
    def size(self) -> float:
        """How many rows to reckon with."""
        return USUAL_ROWS if self.rows is None else self.rows

    @property
    def pure(self) -> bool:
        """Whether nothing is left to δ."""
        return isinstance(self.guarantee, PureDP) or (
            isinstance(self.guarantee, ApproxDP) and self.guarantee.delta == 0
        )


@dataclass(frozen=True)
class Choice:
    """A learner by name, with options; `projection` is None where the rows stay as they are."""

    learner: str
    projection: str | None
    dimension: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def choose(
    situation: Situation,
    *,
    learner: str = "auto",
    projection: str | None = "auto",
    dimension: int | None = None,
) -> Choice:
    """Return what to do; whatever is given rather than "auto" (None for a dimension) stays."""
    chosen = choose_learner(situation) if learner == "auto" else learner
    options = choose_options(situation, chosen)
    kind = projection
    if projection == "auto":
        wanted = dimension is not None or chosen in {"output_perturbation", "whitened"}
        kind = "gaussian" if wanted else None
    target = choose_dimension(situation, chosen) if dimension is None else dimension
    if kind is None or (projection == "auto" and target >= situation.dimension):
        return Choice(chosen, None, None, options)
    return Choice(chosen, kind, min(target, situation.dimension), options)


def choose_learner(situation: Situation) -> str:
    """Return the learner that does best, as far as experiments tell.

    Noisy gradients; where rows·μ is too small for those, mirror descent, whose noise grows with the
    logarithm of the number of extreme points. For pure guarantees Frank-Wolfe, whose noise does so
    too, or output perturbation where extreme points cannot be listed; its noise is drawn in
    floating point, so a gate takes it only from whoever names it.
    """
    if not situation.pure:
        enough = _ENOUGH_FOR_HINGE if situation.loss == "hinge" else _ENOUGH
        few = situation.size * strength(situation) < enough
        return "mirror_descent" if few and situation.listed else "noisy_gradient"
    return "frank_wolfe" if situation.listed else "output_perturbation"


def choose_options(situation: Situation, learner: str) -> dict[str, Any]:
    """Return the learner's options: how many steps the noise allows, and how far they go."""
    if learner == "frank_wolfe":
        return frank_wolfe_steps(situation)
    if learner == "noisy_gradient":
        return gradient_steps(situation)
    return {}


def gradient_steps(situation: Situation) -> dict[str, Any]:
    """Return steps in proportion to rows·μ; the hinge, which has no curve, takes longer ones."""
    allowed = situation.size * strength(situation) / 100
    if situation.loss == "hinge":
        return {"steps": within(allowed, _HINGE_STEPS), "rate": _HINGE_RATE}
    return {"steps": within(allowed, _GRADIENT_STEPS)}


def frank_wolfe_steps(situation: Situation) -> dict[str, Any]:
    """Return steps in proportion to rows·ε; few of them go only part of the way to the boundary."""
    allowed = (3e-4 if situation.pure else 4e-3) * situation.size * strength(situation)
    if allowed >= _FREE_STEPS[0]:
        return {"steps": within(allowed, _FREE_STEPS), "stride": None}
    steps = within(allowed, _SHORT_STEPS)
    return {"steps": steps, "stride": 0.05 if steps > 1 else 0.03}


def within(number: float, ends: tuple[int, int]) -> int:
    """Return a number rounded, or the end that it is beyond."""
    return round(min(max(number, ends[0]), ends[1]))


def choose_dimension(situation: Situation, learner: str) -> int:
    """Return how many dimensions to project to, where one must.

    `python -m dplinear.planner.compressed_forecast` prints the simulations behind the numbers;
    docs/planning.md has some.
    """
    usual = DIRECT_DIMENSION if learner in DIRECT else GRADIENT_DIMENSION
    return min(situation.dimension, WHITENED_DIMENSION if learner == "whitened" else usual)


def theory(situation: Situation, base: ConvexSet, dimension: int) -> dict[str, float]:
    """Return what the paper's theorems say of a projection, with unit constants, beside its own.

    Promises: nothing where they do not speak of the guarantee, or where a width must be simulated.
    """
    asked = situation.guarantee
    spoken = isinstance(asked, PureDP | ApproxDP) and asked.epsilon > 0
    if not spoken or not isinstance(base, L1Ball | L2Ball | Simplex):
        return {}
    assert isinstance(asked, PureDP | ApproxDP)  # noqa: S101 - as was just asked
    rows = max(round(situation.size), 2)
    setting = theorems.Setting(rows=rows, width=base.width().value, size=base.radius)
    return {
        "dimension": dimension,
        "theorem_dimension": theorems.projected_dimension(setting, asked, _FAILURE),
        "lift_distance": theorems.lift_distance(setting, dimension, _FAILURE),
    }


def usual_clip(dimension: int) -> float:
    """Return the norm to clip projected rows at: noise grows with it, and few rows are longer.

    ‖Φx‖ is about ‖x‖·(1 ± 1/√(2·dimension)), so this is two deviations above what rows have.
    """
    return 1.0 + 1.5 / math.sqrt(dimension)


def strength(situation: Situation) -> float:
    """Return ε where nothing is left to δ, and μ of normal noise elsewhere."""
    guarantee = situation.guarantee
    if situation.pure or (isinstance(guarantee, ApproxDP) and guarantee.epsilon == 0):
        return float(getattr(guarantee, "epsilon", 1.0))
    return 1.0 / calibrate.gaussian(guarantee, 1.0)


def weaken(guarantee: Guarantee, factor: float) -> Guarantee:
    """Return a guarantee that allows noise smaller by a factor: fewer rows then fare as more would.

    ε times the factor where nothing is left to δ, μ times it elsewhere, with the same δ.
    """
    match guarantee:
        case PureDP() | ApproxDP(delta=0):
            return PureDP(guarantee.epsilon * factor)
        case ZCDP():
            return ZCDP(guarantee.rho * factor**2)
        case ApproxDP():
            mu = factor / calibrate.gaussian(guarantee, 1.0)
            return GDP(mu).to(ApproxDP, delta=guarantee.delta)
        case _:
            rule = "a PureDP, ApproxDP or ZCDP guarantee"
            raise arguments.wrong_type("guarantee", "compression.weakened", rule, guarantee)
