"""The way of `release_model` for rows without a schema: loss + set + learner, compressed or not."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

import numpy as np
from scipy import sparse

from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.constrained import WEIGHT_BOUND, ConstrainedRelease
from dplinear.analyst.releases.sparse_vector import SparseVector
from dplinear.analyst.releases.units import UnitConversion
from dplinear.arguments import ArgumentError, flag, integer, real, rejection, wrong_type
from dplinear.convex.compression.images import Image, Map
from dplinear.convex.compression.lift import lift_point
from dplinear.convex.compression.matrix_map import MatrixMap
from dplinear.convex.compression.projections import Projection
from dplinear.convex.examples import Examples
from dplinear.convex.learners.contract import (
    ConstrainedMechanism,
    Learned,
    PreparedConstrained,
    Task,
)
from dplinear.curator.examples import Rules, check_table, read_examples
from dplinear.curator.gates.constrained_terms import Terms, read_projection
from dplinear.curator.gates.options import own_options
from dplinear.curator.labels import check_kind
from dplinear.curator.passage import Passage
from dplinear.curator.row_weights import RowWeights
from dplinear.planner.auto import AUTO
from dplinear.planner.compression import Choice, Situation, choose, theory, usual_clip
from dplinear.planner.simulated_dimension import simulated_dimension
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import CONSTRAINED

_WHERE = "release_model"
_AS_GIVEN = ("projection", "dimension", "seed", "clip", "row_norm", "options")
_SCALING = 1.0  # the constant feature, where rows of norm `row_norm` count as 1
_SEED_BITS = 53  # so that any reader of JSON gets it whole


@dataclass(frozen=True, eq=False)
class RowsAsked:
    """What a caller asks of a model of rows without a schema: a model in a constraint set.

    `table` has a row for each of the `labels`, and of what `weights` holds; they are the caller's,
    and are not read here.
    """

    table: Any
    labels: Any
    asked: Guarantee
    relation: Neighbours
    terms: Terms
    projection: Any
    projected: bool
    dimension: int | str | None
    seed: int | None
    clip: float | None
    constant: float
    row_norm: float
    options: Mapping[str, Any]
    weights: RowWeights

    @classmethod
    def of(cls, given: Mapping[str, Any], asked: Guarantee, relation: Neighbours) -> "RowsAsked":
        """Read the arguments of `release_model`, as far as no table need be seen for it."""
        names = ("loss", "target_bounds", "classes", "constraint", "row_norm", "lift")
        mechanism = AUTO if given["mechanism"] is None else given["mechanism"]
        terms = Terms.of(
            _WHERE,
            mechanism=mechanism,
            expected_rows=given["expected_rows"],
            **{name: given[name] for name in names},
        )
        return cls(
            table=given["data"],
            labels=given["target"],
            asked=asked,
            relation=relation,
            terms=terms,
            projected=flag(given["projected"], "projected", _WHERE),
            constant=_constant(given["intercept"], given["intercept_scaling"]),
            weights=RowWeights.of(given, _WHERE),
            **{name: given[name] for name in _AS_GIVEN},
        )


def constrained_through(
    passage: Passage, asked: Guarantee, relation: Neighbours
) -> ConstrainedRelease:
    """Choose, calibrate, check the table, and go through the passage.

    Kasiviswanathan and Jin 2016 call the two ways in StdERM, which gets rows, and ProjERM, which
    gets rows that are `projected` already.
    """
    given = RowsAsked.of(passage.given, asked, relation)
    passage.with_weights(given.weights)
    rules, task, plan, situation = (
        _given_map(given) if given.projected else _own_map(passage, given)
    )
    options = {name: value for name, value in given.options.items() if name != "progress"}
    ready = Ready.of(given, task, plan, options, situation)
    return ready.through(passage, given, rules)


def _own_map(passage: Passage, given: RowsAsked) -> tuple[Rules, Task, Choice, Situation]:
    """Return how rows are read, and what is learnt of them, perhaps after a projection."""
    terms, where, X = given.terms, passage.where, given.table
    kind = read_projection(given.projection, given.dimension, where)
    seed = _seed(given.seed, passage, where)
    features = _columns(X, where)
    base = terms.base(features + (given.constant != 0))
    situation = terms.situation(base, given.asked, X, given.relation, given.weights)
    dimension = given.dimension
    if isinstance(dimension, str):
        dimension = simulated_dimension(
            situation,
            base,
            terms.loss,
            given.relation,
            learner=terms.learner,
            sparse=bool(sparse.issparse(X)),
            clip=given.clip,
        )
    plan = _choose_learner(terms, situation, kind, dimension)
    drawn = _draw_projection(plan, base.dimension, seed)
    rules = Rules(
        features=features,
        row_norm=given.row_norm,
        **terms.label_rules,
        projection=drawn,
        clip=_clip(given.clip, drawn),
        intercept=given.constant,
    )
    return rules, _task(given, rules, Image(base, drawn), situation), plan, situation


def _given_map(given: RowsAsked) -> tuple[Rules, Task, Choice, Situation]:
    """Return how rows that are projected already are read, and what is learnt of them.

    Privacy rests on their clipped norms, and not on what the projection is.
    """
    terms, where, Z = given.terms, given.terms.where, given.table
    known = given.projection
    if known is None or isinstance(known, str):
        rule = "a Projection or a matrix, where rows are projected already"
        raise wrong_type("projection", where, rule, known)
    try:
        public = known if isinstance(known, Projection) else MatrixMap(known)
    except ArgumentError as error:
        facts = ("projection", where, error.rule, error.got, error.hint)
        raise type(error)(*facts) from None
    for name in ("dimension", "seed"):
        if getattr(given, name) is not None:
            rule = "None where rows are projected already"
            raise rejection(name, where, rule, getattr(given, name))
    if _columns(Z, where) != public.target:
        rule = f"of {public.target} columns, one for each row of the projection"
        raise rejection("data", where, rule, f"{Z.shape[1]} columns")
    base = terms.base(public.source)
    situation = terms.situation(base, given.asked, Z, given.relation, given.weights)
    plan = _choose_learner(terms, situation, "given", public.target)
    rules = Rules(
        features=public.target,
        row_norm=given.row_norm,
        **terms.label_rules,
        projection=cast("Projection", public),  # of which the rules need the sizes only
        clip=_clip(given.clip, public),
        compressed=True,
    )
    return rules, _task(given, rules, Image(base, public), situation), plan, situation


def _task(given: RowsAsked, rules: Rules, image: Image, situation: Situation) -> Task:
    return Task(rules.frame, given.terms.loss, image, situation.rows, given.weights.weighted)


@dataclass(frozen=True, eq=False)
class Ready:
    """A learner that is calibrated, and whatever of the release is known before a row is read."""

    terms: Terms
    task: Task
    learner: ConstrainedMechanism
    prepared: PreparedConstrained
    public: Mapping[str, Any] = field(default_factory=dict)
    foreseen: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        given: RowsAsked,
        task: Task,
        plan: Choice,
        options: Mapping[str, Any],
        situation: Situation,
    ) -> "Ready":
        """Calibrate the learner."""
        terms = given.terms
        kind = CONSTRAINED[plan.learner]
        own = dict(plan.options) | own_options(kind, options, terms.where, ())
        learner = kind(guarantee=given.asked, neighbours=given.relation, **own)
        prepared = learner.prepare(task)
        knees = {entry.name: getattr(terms.loss, entry.name) for entry in fields(terms.loss)}  # type: ignore[arg-type]
        public = {"loss": terms.loss.name, **knees, **own}
        if given.weights.surveyed:
            public[WEIGHT_BOUND] = given.weights.bound
        image = task.image
        foreseen = {} if image.map is None else theory(situation, image.base, image.dimension)
        return cls(terms, task, learner, prepared, public, foreseen)

    def through(self, passage: Passage, given: RowsAsked, rules: Rules) -> ConstrainedRelease:
        """Check the table, and go through the passage."""
        where, table, labels, weights = self.terms.where, given.table, given.labels, given.weights
        progress = given.options.get("progress")
        if progress is not None and not isinstance(progress, bool):
            raise wrong_type("progress", where, "True, False or None", progress)
        check_table(table, labels, rules, where)
        weights.check(table.shape[0], where)
        if self.terms.classes is not None:
            check_kind(labels, self.terms.classes[1], where, "target")
        if self.learner.dense and rules.projection is None and not isinstance(table, np.ndarray):
            rule = f"an array, or projected, for the mechanism {self.learner.name}"
            raise wrong_type("data", where, rule, type(table).__name__)

        def read() -> Examples:
            own = weights.read()
            return read_examples(table, labels, rules, weights=own, progress=progress, where=where)

        def release(learned: Learned, certificate: Certificate) -> ConstrainedRelease:
            source, how = self.lift(learned)
            image = self.task.image
            known = self.learner.neighbours.rows_are_public and not weights.weighted
            parameters = {**self.public, **learned.parameters}
            return ConstrainedRelease(
                source=SparseVector.of(source),
                loss=self.terms.loss.name,
                units=_units(rules, self.terms),
                certificate=replace(certificate, parameters=parameters),
                constraint=_flat(image.base.facts()),
                projection=None if image.map is None else _map_facts(image.map),
                compressed=None if image.map is None else np.array(learned.point),
                lift=how,
                plan=self.foreseen,
                rows=int(table.shape[0]) if known else None,
            )

        return passage.cross(self.learner, self.prepared, read, release, self.public)

    def lift(self, learned: Learned) -> tuple[Any, dict[str, Any]]:
        """Return a θ of C for the released point, and how it was found."""
        image, how = self.task.image, self.terms.lift
        if image.map is None:
            return learned.point, {}
        found = lift_point(image, learned.point, learned.source, how)
        return found.source, _lift_facts(found.method, found.residual, found.gauge)


def _choose_learner(
    terms: Terms, situation: Situation, projection: str | None, dimension: int | None
) -> Choice:
    """Return what to do; "auto" never stands for a learner whose noise is floating point."""
    plan = choose(situation, learner=terms.learner, projection=projection, dimension=dimension)
    if terms.learner == "auto" and CONSTRAINED[plan.learner].numerics != "exact":
        rule = "named where no exact learner keeps pure ε in the set"
        hint = (
            "give a delta, or a set whose extreme points can be listed (an L1 ball, a simplex); "
            f'or write mechanism="{plan.learner}", whose guarantee is of the ideal mechanism only.'
        )
        raise rejection("mechanism", terms.where, rule, terms.learner, hint)
    return plan


def _lift_facts(method: str, residual: float, gauge: float) -> dict[str, Any]:
    """Return how θ was found; a gauge is infinite where no multiple of the set contains θ."""
    known = gauge if math.isfinite(gauge) else None
    return {"method": method, "residual": residual, "gauge": known}


def _seed(seed: int | None, passage: Passage, where: str) -> int:
    """Return the projection's public seed, drawn afresh unless it is given."""
    if seed is None:
        return passage.entropy.bits(_SEED_BITS)
    return integer(seed, "seed", where, low=0, high=(1 << _SEED_BITS) - 1)


def _constant(intercept: object, scaling: object) -> float:
    """Return the value of the constant feature, or 0 for none."""
    if intercept is None or not flag(intercept, "intercept", _WHERE):
        if scaling is not None:
            raise rejection("intercept_scaling", _WHERE, "left out without an intercept", scaling)
        return 0.0
    value = _SCALING if scaling is None else scaling
    return real(value, "intercept_scaling", _WHERE, low=1e-3, high=1e3)


def _columns(table: Any, where: str) -> int:
    """Return how many columns a table has, looking at its shape alone."""
    shape = getattr(table, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or not shape[1]:
        rule = "an array or a SciPy sparse matrix of two dimensions, with columns"
        raise wrong_type("data", where, rule, type(table).__name__)
    return int(shape[1])


def _clip(clip: float | None, given: Map | None) -> float:
    """Return the norm of projected rows, which matters where there are any."""
    if clip is not None:
        return clip
    return 1.0 if given is None else usual_clip(given.target)


def _draw_projection(plan: Choice, source: int, seed: int) -> Projection | None:
    if plan.projection is None or plan.dimension is None:
        return None
    return Projection(plan.projection, plan.dimension, source, seed)


def _units(rules: Rules, terms: Terms) -> UnitConversion:
    constant = rules.constant or None
    return UnitConversion(rules.row_norm, rules.scale, constant, terms.target_bounds, terms.classes)


def _map_facts(given: Map) -> Mapping[str, Any]:
    return cast("Projection | MatrixMap", given).facts()


def _flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts about a set made of another, with the other's beside them."""
    flat: dict[str, Any] = {}
    for name, fact in facts.items():
        inner = _flat(fact) if isinstance(fact, Mapping) else {"": fact}
        flat |= {f"{name}.{key}" if key else name: value for key, value in inner.items()}
    return flat
