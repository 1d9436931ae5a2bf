"""The gates for one linear model in a constraint set: loss + set + learner, compressed or not.

The order is the gate's: check, calibrate, spend, read, learn, lift, certify. Kasiviswanathan and
Jin 2016 call the two ways in StdERM, which gets rows, and ProjERM, which gets projected rows only.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

import numpy as np
from scipy import sparse

from dplinear.analyst.releases.constrained import LinearRelease
from dplinear.analyst.releases.sparse_vector import SparseVector
from dplinear.analyst.releases.units import Reading
from dplinear.arguments import integer, mistyped, rejection
from dplinear.convex.compression.images import Image, Map
from dplinear.convex.compression.lift import released
from dplinear.convex.compression.matrix_map import MatrixMap
from dplinear.convex.compression.projections import Projection
from dplinear.convex.learners import LEARNERS
from dplinear.convex.learners.contract import Learned, Learner, PreparedLearner, Task
from dplinear.convex.losses import Loss
from dplinear.convex.sets.given import Constraint
from dplinear.curator.examples import Rules, check_table, read_examples, read_intercept
from dplinear.curator.gates.constrained_terms import Terms, read_projection
from dplinear.curator.gates.moments import Curve, Passage, curve_of, own_options
from dplinear.curator.labels import check_kind
from dplinear.curator.recorded import recorded
from dplinear.curator.sources.pool import one_blas_thread
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.planner.compression import Choice, Situation, choose, theory, usual_clip
from dplinear.planner.simulated_dimension import simulated_dimension
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours

_SEED_BITS = 53  # so that any reader of JSON gets it whole


@recorded
def std_erm(
    X: Any,
    y: Any,
    *,
    row_norm: float,
    constraint: Constraint,
    loss: str | Loss = "squared",
    target_bounds: tuple[float, float] | None = None,
    classes: tuple[Any, Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    projection: str | None = "auto",
    dimension: int | str | None = None,
    seed: int | None = None,
    clip: float | None = None,
    learner: str = "auto",
    lift: str = "auto",
    intercept: float = 0.0,
    rows: float | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    progress: bool | None = None,
    **options: Any,
) -> LinearRelease:
    """Release one linear model whose coefficients lie in a public convex set.

    Requires: rows X, which may be sparse, and a label for each; `row_norm`, the public norm that
    longer rows are scaled down to; a `constraint` on θ, in units in which rows have norm at most 1
    and labels lie within ±1: an L1 radius, a set, or what makes one for a number of dimensions;
    `target_bounds` for "squared" and "huber" losses, two `classes` for "logistic" and "hinge".
    `projection` is a kind ("gaussian", "rademacher", "sparse", "very_sparse"), None, or "auto":
    then the planner chooses, as it does the `dimension` and the `learner`. A dimension of
    "simulate" is the best of a simulation of such tables, which reads none and may take half a
    minute. `seed`, public, names the projection; `clip` is the norm of projected rows
    (None: a little above what they usually have). `intercept`
    is the value of one more feature (0: none), the last of the set's coordinates. `rows` is the
    order of magnitude of their number where it is public: it helps to choose, and enters no
    promise. `lift` says which θ is released: the learner's own ("carried"), or that of the least
    gauge. Further options go to the learner.
    Promises: the release satisfies what its certificate says, whatever the rows hold. Arguments,
    shapes and dtypes are checked before anything is spent; nothing is read before it is spent.
    """
    where = "std_erm"
    terms = Terms.of(
        where,
        loss=loss,
        target_bounds=target_bounds,
        classes=classes,
        constraint=constraint,
        row_norm=row_norm,
        learner=learner,
        lift=lift,
        rows=rows,
    )
    relation = Neighbours.parse(neighbours, where, RELATIONS)
    asked = read_guarantee(where, epsilon, delta, guarantee)
    kind = read_projection(projection, dimension, where)
    passage = Passage(where, ledger, dataset, request)
    seed = _seed(seed, passage, where)
    features = _columns(X, where)
    intercept = read_intercept(intercept, where)
    base = terms.base(features + (intercept != 0))
    situation = terms.situation(base, asked, X, relation)
    if isinstance(dimension, str):
        dimension = simulated_dimension(
            situation,
            base,
            terms.loss,
            relation,
            learner=terms.learner,
            sparse=bool(sparse.issparse(X)),
            clip=clip,
        )
    plan = _chosen(terms, situation, kind, dimension)
    drawn = _drawn(plan, base.dimension, seed)
    rules = Rules(
        features=features,
        row_norm=row_norm,
        **terms.label_rules,
        projection=drawn,
        clip=_clip(clip, drawn),
        intercept=intercept,
    )
    task = Task(rules.frame, terms.loss, Image(base, drawn), situation.rows)
    ready = Ready.of(terms, task, plan, asked, relation, options, situation)
    return ready.through(passage, X, y, rules, progress)


@recorded
def proj_erm(
    Z: Any,
    y: Any,
    projection: Any,
    *,
    row_norm: float,
    constraint: Constraint,
    loss: str | Loss = "squared",
    target_bounds: tuple[float, float] | None = None,
    classes: tuple[Any, Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    clip: float | None = None,
    learner: str = "auto",
    lift: str = "auto",
    rows: float | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    progress: bool | None = None,
    **options: Any,
) -> LinearRelease:
    """Release one linear model from projected rows alone: Z = XΦᵀ, y, and the public Φ.

    Requires: Φ, a `Projection` or a matrix with a row for each column of Z, made without looking at
    X; `row_norm`, that of X: rows of Z longer than clip·row_norm are scaled down to it. All else as
    for `std_erm`.
    Promises: what `std_erm` does. Privacy rests on the clipped Z, and not on what Φ is.
    """
    where = "proj_erm"
    terms = Terms.of(
        where,
        loss=loss,
        target_bounds=target_bounds,
        classes=classes,
        constraint=constraint,
        row_norm=row_norm,
        learner=learner,
        lift=lift,
        rows=rows,
    )
    relation = Neighbours.parse(neighbours, where, RELATIONS)
    asked = read_guarantee(where, epsilon, delta, guarantee)
    given = projection if isinstance(projection, Projection) else MatrixMap(projection)
    passage = Passage(where, ledger, dataset, request)
    if _columns(Z, where, "Z") != given.target:
        rule = f"of {given.target} columns, one for each row of the projection"
        raise rejection("Z", where, rule, f"{Z.shape[1]} columns")
    base = terms.base(given.source)
    situation = terms.situation(base, asked, Z, relation)
    plan = _chosen(terms, situation, "given", given.target)
    rules = Rules(
        features=given.target,
        row_norm=row_norm,
        **terms.label_rules,
        projection=cast("Projection", given),  # of which the rules need the sizes only
        clip=_clip(clip, given),
        compressed=True,
    )
    task = Task(rules.frame, terms.loss, Image(base, given), situation.rows)
    ready = Ready.of(terms, task, plan, asked, relation, options, situation)
    return ready.through(passage, Z, y, rules, progress)


@dataclass(frozen=True, eq=False)
class Ready:
    """A learner that is calibrated, and whatever of the release is known before a row is read."""

    terms: Terms
    task: Task
    learner: Learner
    prepared: PreparedLearner
    curve: Curve
    public: Mapping[str, Any] = field(default_factory=dict)
    foreseen: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(  # noqa: PLR0917 - as above
        cls,
        terms: Terms,
        task: Task,
        plan: Choice,
        asked: Guarantee,
        relation: Neighbours,
        options: Mapping[str, Any],
        situation: Situation,
    ) -> "Ready":
        """Calibrate the learner."""
        kind = LEARNERS[plan.learner]
        own = dict(plan.options) | own_options(kind, options, terms.where, ())
        learner = kind(guarantee=asked, neighbours=relation, **own)
        prepared = learner.prepare(task)
        knees = {entry.name: getattr(terms.loss, entry.name) for entry in fields(terms.loss)}  # type: ignore[arg-type]
        public = {"loss": terms.loss.name, **knees, **own}
        curve = curve_of(prepared.account.profile)
        image = task.image
        foreseen = {} if image.map is None else theory(situation, image.base, image.dimension)
        return cls(terms, task, learner, prepared, curve, public, foreseen)

    def through(
        self,
        passage: Passage,
        table: Any,
        y: Any,
        rules: Rules,
        progress: bool | None,  # noqa: FBT001 - the caller's argument, passed on
    ) -> LinearRelease:
        """Check the table, spend, read, learn, lift, certify."""
        where = self.terms.where
        if progress is not None and not isinstance(progress, bool):
            raise mistyped("progress", where, "True, False or None", progress)
        check_table(table, y, rules, where)
        if self.terms.classes is not None:
            check_kind(y, self.terms.classes[1], where)
        if self.learner.dense and rules.projection is None and not isinstance(table, np.ndarray):
            rule = f"an array, or projected, for the learner {self.learner.name}"
            raise mistyped("X", where, rule, type(table).__name__)
        passage.spend(self.learner, self.prepared.account, self.public)
        with one_blas_thread():
            examples = read_examples(table, y, rules, progress=progress, where=where)
            learned = self.prepared.learn(examples, passage.entropy)
            source, how = self.lifted(learned)
        shown = self.curve
        if learned.account is not self.prepared.account:
            shown = curve_of(learned.account.profile)
        parameters = {**self.public, **learned.parameters}
        image, relation = self.task.image, self.learner.neighbours
        return LinearRelease(
            source=SparseVector.of(source),
            loss=self.terms.loss.name,
            reading=_reading(rules, self.terms),
            certificate=passage.certificate(self.learner, learned.account, parameters, shown),
            constraint=_flat(image.base.facts()),
            projection=None if image.map is None else _map_facts(image.map),
            compressed=None if image.map is None else np.array(learned.place),
            lift=how,
            plan=self.foreseen,
            rows=int(table.shape[0]) if relation is Neighbours.REPLACE else None,
        )

    def lifted(self, learned: Learned) -> tuple[Any, dict[str, Any]]:
        """Return a θ of C for the released point, and how it was found."""
        image, how = self.task.image, self.terms.lift
        if image.map is None:
            return learned.place, {}
        found = released(image, learned.place, learned.source, how)
        return found.source, _told(found.method, found.residual, found.gauge)


def _chosen(
    terms: Terms, situation: Situation, projection: str | None, dimension: int | None
) -> Choice:
    """Return what to do; "auto" never stands for a learner whose noise is floating point."""
    plan = choose(situation, learner=terms.learner, projection=projection, dimension=dimension)
    if terms.learner == "auto" and LEARNERS[plan.learner].numerics != "exact":
        rule = "named where no exact learner keeps pure ε in the set"
        hint = (
            "give a delta, or a set whose extreme points can be listed (an L1 ball, a simplex); "
            f'or write learner="{plan.learner}", whose guarantee is of the ideal mechanism only.'
        )
        raise rejection("learner", terms.where, rule, terms.learner, hint)
    return plan


def _told(method: str, residual: float, gauge: float) -> dict[str, Any]:
    """Return how θ was found; a gauge is infinite where no multiple of the set contains θ."""
    known = gauge if math.isfinite(gauge) else None
    return {"method": method, "residual": residual, "gauge": known}


def _seed(seed: int | None, passage: Passage, where: str) -> int:
    """Return the projection's public seed, drawn afresh unless it is given."""
    if seed is None:
        return passage.entropy.bits(_SEED_BITS)
    return integer(seed, "seed", where, low=0, high=(1 << _SEED_BITS) - 1)


def _columns(table: Any, where: str, name: str = "X") -> int:
    """Return how many columns a table has, looking at its shape alone."""
    shape = getattr(table, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or not shape[1]:
        rule = "an array or a SciPy sparse matrix of two dimensions, with columns"
        raise mistyped(name, where, rule, type(table).__name__)
    return int(shape[1])


def _clip(clip: float | None, given: Map | None) -> float:
    """Return the norm of projected rows, which matters where there are any."""
    if clip is not None:
        return clip
    return 1.0 if given is None else usual_clip(given.target)


def _drawn(plan: Choice, source: int, seed: int) -> Projection | None:
    if plan.projection is None or plan.dimension is None:
        return None
    return Projection(plan.projection, plan.dimension, source, seed)


def _reading(rules: Rules, terms: Terms) -> Reading:
    constant = rules.constant or None
    return Reading(rules.row_norm, rules.scale, constant, terms.target_bounds, terms.classes)


def _map_facts(given: Map) -> Mapping[str, Any]:
    return cast("Projection | MatrixMap", given).facts()


def _flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts about a set made of another, with the other's beside them."""
    flat: dict[str, Any] = {}
    for name, fact in facts.items():
        inner = _flat(fact) if isinstance(fact, Mapping) else {"": fact}
        flat |= {f"{name}.{key}" if key else name: value for key, value in inner.items()}
    return flat
