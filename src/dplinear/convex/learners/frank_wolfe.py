"""Noisy Frank-Wolfe: each step moves towards the extreme point that a noisy gradient points to.

Talwar, Thakurta and Zhang 2015 (arXiv 1411.5417v3), Algorithm 2, over ΦC: the extreme points of ΦC
are those of C, mapped, so every step knows a θ of C with Φθ = ϑ. Where the extreme points can be
listed, one is drawn by the exponential mechanism; elsewhere the gradient itself has normal noise.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dplinear import arguments
from dplinear.adaptive.noisy_sums import Budget, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.convex.atom_scores import AtomScores
from dplinear.convex.cell_sums import CellSlopeSum
from dplinear.convex.examples import SlopeSum
from dplinear.convex.learners.common import (
    USUAL_ROWS,
    check_chained,
    check_method,
    check_steps,
    check_task,
    read_slope,
)
from dplinear.convex.learners.contract import (
    ConstrainedMechanism,
    Learned,
    Passes,
    PreparedConstrained,
    Task,
)
from dplinear.convex.sets.contract import Atoms
from dplinear.mechanisms import checks
from dplinear.mechanisms.contract import Account
from dplinear.noise import selection
from dplinear.noise.entropy import Entropy
from dplinear.privacy import calibrate, selections
from dplinear.privacy.guarantees import ApproxDP, PureDP
from dplinear.privacy.neighbours import Neighbours

STEPS = (1, 40)  # the fewest and the most, by default
STRIDE = 0.05
_CLEAR = (3300.0, 240.0)  # rows times ε, or rows times μ, that pay for a step
_WHERE = "FrankWolfe"


@dataclass(frozen=True, eq=False)
class _Prepared(PreparedConstrained):
    """Steps with a budget, ready to be taken once."""

    task: Task
    account: Account
    steps: int
    slope: float
    method: "FrankWolfe"
    facts: dict[str, Any]

    def gradient(self, theta: Floats) -> SlopeSum:
        """Return the statistic that is the gradient at a place."""
        frame, loss, cell = self.task.frame, self.task.loss, self.method.cell
        if cell is None:
            return SlopeSum(frame, loss, theta, self.slope)
        return CellSlopeSum(frame, loss, theta, self.slope, cell)

    def take_step(self, source: Floats, corner: Floats, step: int) -> Floats:
        """Return θ after a step, counted from 0, towards a point of C."""
        part = 2 / (step + 2) if self.method.stride is None else self.method.stride
        return np.asarray((1 - part) * source + part * corner)

    def learned_point(self, source: Floats) -> Learned:
        """Return the point that the steps ended at."""
        own = {"stride": self.method.stride, "cell": self.method.cell}
        facts = {"steps": self.steps, "slope": self.slope, **own, **self.facts}
        return Learned(self.task.image.forward(source), source, self.account, facts)


@dataclass(frozen=True, eq=False)
class PreparedSelections(_Prepared):
    """Frank-Wolfe by the exponential mechanism on the extreme points.

    Each step's scores are exact integers; their range divides the step's ε, so that the logarithms
    of neighbours' likelihood ratios lie within ε of each other.
    """

    atoms: Atoms
    corners: Atoms
    epsilon: Fraction

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Return where the steps end."""
        image, corners = self.task.image, self.corners
        source = _start(corners)
        kind = self.gradient(np.zeros(image.dimension))
        whole = examples.denominator  # in whose units a row of weight 1 moves sums by its bound
        largest = whole * kind.largest if isinstance(kind, CellSlopeSum) else None
        scores = AtomScores(self.atoms, whole * kind.bound, largest)
        replaced = self.method.neighbours is Neighbours.REPLACE
        moved = scores.replaced_range if replaced else scores.range
        for step in range(self.steps):
            theta = image.forward(source)
            (total,) = examples.sums([self.gradient(theta)])
            found = scores.of(total)
            qualities = np.concatenate((-found, found)) if corners.signed else -found
            chosen = selection.draw(qualities, self.epsilon / moved, entropy=entropy)
            source = self.take_step(source, corners.columns([chosen])[:, 0], step)
        return self.learned_point(source)


@dataclass(frozen=True, eq=False)
class PreparedDirections(_Prepared):
    """Frank-Wolfe by gradients with normal noise, where extreme points cannot be listed."""

    budget: Budget

    def run(self, examples: Passes, entropy: Entropy) -> Learned:
        """Return where the steps end."""
        image = self.task.image
        sums = NoisySums(examples, self.budget, entropy)
        source = image.minimiser(np.zeros(image.dimension))
        for step in range(self.steps):
            gradient = self.gradient(image.forward(source))
            (answer,) = sums.ask([Query(gradient, Fraction(1, self.steps))])
            source = self.take_step(source, image.minimiser(answer.values), step)
        return self.learned_point(source)


@dataclass(frozen=True, kw_only=True)
class FrankWolfe(ConstrainedMechanism):
    """A point of ΦC that is a mixture of few extreme points.

    Requires: bounded examples; `steps`, their number; `slope`, at which the loss's slopes are
    clipped (None: what margins in ΦC can reach, or 2 if that is less); `stride`, the part of the
    way that each step goes (None: 2/(t + 2), as in the paper: better where there is next to no
    noise); `cell`, at which the cells of rows are clipped in gradients, where there is no Φ and
    extreme points are unit vectors: noise is then in proportion to it (None: to the norm of rows).
    All are public; the number of examples is not used. By default there are the more steps, 1 to
    40, the more rows are expected (`Task.rows`) and the larger ε is.
    Promises: `PureDP`, `ApproxDP` or `ZCDP` of the whole path, add/remove or replace, where the
    extreme points can be listed; elsewhere `ApproxDP` or `ZCDP`. Numerics are exact: scores are
    integers, and choices have exactly the law that is claimed.
    Departs from the paper: the exponential mechanism for its Laplace noise, so that k steps of ε
    are kε²/8-zCDP and pure kε; the number of examples stays private.
    """

    steps: int | None = None
    slope: float | None = None
    stride: float | None = STRIDE
    cell: float | None = None
    name: ClassVar[str] = "frank_wolfe"
    numerics: ClassVar[str] = "exact"
    for_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_method(self)
        if type(self.guarantee) in checks.GRID_HINTS:
            rule = "a PureDP, ApproxDP or ZCDP guarantee"
            raise arguments.wrong_type("guarantee", _WHERE, rule, self.guarantee)
        check_steps(self.steps, _WHERE)
        if self.stride is not None:
            arguments.real(self.stride, "stride", _WHERE, low=0, high=1, open_low=True)
        if self.cell is not None:
            arguments.positive(self.cell, "cell", _WHERE)

    def prepare(self, task: Task) -> PreparedConstrained:
        """Divide the guarantee among the steps."""
        check_task(task, _WHERE)
        steps = self.steps or self._usual(task)
        slope = read_slope(task, self.slope, _WHERE)
        atoms, corners = task.image.atoms, task.image.base.atoms
        if self.cell is not None and (atoms is None or atoms.matrix is not None):
            rule = "left out for projections, and for sets other than L1 balls and simplices"
            raise arguments.rejection("cell", _WHERE, rule, self.cell)
        if atoms is None or corners is None:
            return self._directions(task, steps, slope)
        if atoms.total > selection.MOST:
            rule = f"one of at most {selection.MOST} extreme points"
            raise arguments.rejection("constraint", _WHERE, rule, atoms.total)
        epsilon = selections.range_of(self.guarantee, steps)
        profile = selections.profile(self.guarantee, epsilon, steps, self.neighbours)
        account = checks.exact_account(self.guarantee, profile)
        facts = {"step_epsilon": float(epsilon)}
        return PreparedSelections(task, account, steps, slope, self, facts, atoms, corners, epsilon)

    def _usual(self, task: Task) -> int:
        """Return a number of steps, by simulation: the more, the less noise there is."""
        rows, (fewest, most) = task.rows or USUAL_ROWS, STEPS
        if self.cell is not None:
            rows *= max(task.frame.reach / self.cell, 1.0)
        match self.guarantee:
            case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon, delta=0):
                clear = rows * epsilon / _CLEAR[0]
            case _:
                clear = rows / calibrate.gaussian(self.guarantee, 1.0) / _CLEAR[1]
        return min(max(round(clear), fewest), most)

    def _directions(self, task: Task, steps: int, slope: float) -> PreparedDirections:
        if isinstance(self.guarantee, PureDP):
            rule = "of another kind, or the set one whose extreme points can be listed"
            hint = "the L1 ball, the simplex and polytopes have such; other sets get normal noise."
            raise arguments.rejection("guarantee", _WHERE, rule, self.guarantee, hint)
        check_chained(self)
        coordinates = steps * task.image.dimension
        budget = Budget.of(self.guarantee, coordinates, self.neighbours, _WHERE)
        account = checks.exact_account(self.guarantee, budget.profile)
        facts = {"mu": budget.mu}
        return PreparedDirections(task, account, steps, slope, self, facts, budget)


def _start(atoms: Atoms) -> Floats:
    """Return the middle of a set: 0 where every extreme point has an opposite."""
    size = atoms.count if atoms.matrix is None else len(atoms.matrix)
    if atoms.signed:
        return np.zeros(size)
    if atoms.matrix is None:
        return np.full(size, atoms.size / atoms.count)
    return np.asarray(atoms.size * atoms.matrix.mean(axis=1))
