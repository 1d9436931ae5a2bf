"""Inputs of the gates for models in a constraint set, and of the estimators."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dplinear
from dplinear import estimators
from dplinear.convex.compression.projections import Projection
from dplinear.convex.sets import Box, GroupBall, L1Ball, L2Ball, Simplex
from dplinear.privacy import ZCDP, PureDP

from .cases import GUARANTEES, Case, mutated
from .containers import held
from .dice import Dice, Maker
from .releases import COMMON, MADE_BY_USERS
from .strange import strange
from .tables import FLAVOURS, Private
from .values import odd, real, whole, word

_KINDS = ("gaussian", "rademacher", "sparse", "very_sparse")
LEARNERS = (
    "noisy_gradient",
    "frank_wolfe",
    "mirror_descent",
    "output_perturbation",
    "objective_perturbation",
    "exponential",
    "whitened",
)
# The classes of sets, which a gate makes of a class and a radius.
_SETS = ("L1Ball", "L2Ball", "Box", "Simplex", "GroupBall", "Moved")
_ALL = MADE_BY_USERS + _SETS


def _constraint(dice: Dice) -> Any:
    if dice.chance(0.4):
        return odd(dice)
    return dice.make(
        (
            lambda: 1.0,
            lambda: 1e-9,
            lambda: 1e300,
            lambda: L1Ball,
            lambda: L2Ball,
            lambda: Simplex,
            lambda: L2Ball(2),
            lambda: L1Ball(3, 2.0),
            lambda: Box,
            lambda: GroupBall,
            lambda: lambda _: None,
            lambda: lambda dimension: L1Ball(dimension + 1),
        )
    )


_BOUNDS = (
    (-1, 1),
    (0, 10),
    (1, 0),
    (0, 0),
    (-1e308, 1e308),
    (0, float("inf")),
    (0, 5e-324),
    [-1, 1],
    (1,),
)
_CLASSES = ((0, 1), ("a", "b"), (0, 0), (0, "a"), (True, False), (1, 2, 3), (None, 1), (0.5, 1e308))
_LABELS = "the labels themselves"  # as ids, or as weights: whatever they hold, one for each row
_ENTRIES = (_LABELS, _LABELS, _LABELS, np.zeros((2, 2)), np.zeros(9, complex), [1, 2, 3], 7, "all")
_LEARNING: dict[str, Maker] = {
    "row_norm": real,
    "constraint": _constraint,
    "loss": lambda dice: word(dice, "squared", "huber", "logistic", "hinge"),
    "target_bounds": lambda dice: dice.pick(_BOUNDS) if dice.chance(0.6) else odd(dice),
    "classes": lambda dice: dice.pick(_CLASSES) if dice.chance(0.6) else odd(dice),
    "clip": real,
    "mechanism": lambda dice: word(dice, *LEARNERS),
    "lift": lambda dice: word(dice, "auto", "carried", "gauge"),
    "expected_rows": real,
    "progress": odd,
    "steps": lambda dice: dice.pick((1, 2, 5)) if dice.chance(0.5) else odd(dice),
    "rate": real,
    "slope": real,
    "regularisation": real,
    "tolerance": real,
    "stride": real,
    "cell": real,
    "momentum": odd,
    "average": odd,
    "constrained": odd,
    "ramp": real,
    "groups": lambda dice: dice.pick(_ENTRIES),
    "unit": lambda dice: word(dice, "id", "groups", ""),
    "rows_per_unit": whole,
    "sample_weight": lambda dice: dice.pick(_ENTRIES),
    "weight_bound": real,
}
_DRAWN: dict[str, Maker] = {
    "projection": lambda dice: word(dice, "auto", *_KINDS),
    "dimension": lambda dice: dice.pick((1, 2, 3, 10, 0, 2**40)) if dice.chance(0.6) else odd(dice),
    "seed": whole,
    "intercept": odd,
    "intercept_scaling": real,
}


def _labelled(dice: Dice) -> dict[str, Any]:
    if dice.chance(0.5):
        return {"loss": dice.pick(("squared", "huber")), "target_bounds": (-1, 1)}
    return {"loss": dice.pick(("logistic", "hinge")), "classes": dice.pick(((0, 1), ("a", "b")))}


def _asked(dice: Dice) -> dict[str, Any]:
    """Return a learner and a promise that it can keep, cheap ones more often."""
    learner = dice.pick(("output_perturbation", "noisy_gradient") * 6 + LEARNERS)
    if learner == "exponential":
        return {"mechanism": learner, "guarantee": PureDP(1.0)}
    if learner in {"output_perturbation", "objective_perturbation"}:
        return {"mechanism": learner, "epsilon": 1.0, "delta": 1e-6}
    steps = {"steps": dice.pick((1, 2, 3))} if learner != "whitened" else {}
    return {"mechanism": learner, "guarantee": ZCDP(0.5), **steps}


class Labelled:
    """X and y of equal length, in a container that learners take, and their neighbours."""

    def __init__(self, dice: Dice, columns: int, *, replace: bool, lists: bool = False) -> None:
        self.container = dice.pick(
            ("numbers", "numbers", "objects", "sparse", *(("pandas", "list") if lists else ()))
        )
        names = [f"x{place}" for place in range(columns)]
        flavours = ("float",) if self.container in {"numbers", "sparse"} else FLAVOURS
        whole = Private.thrown(dice, [*names, "y"], flavours)
        if self.container == "list" and not whole.rows:
            whole = Private(whole.names, whole.flavours, [[1.0] * (columns + 1)] * 3)
        self._tables = (whole, whole.neighbour(dice, replace=replace or self.container == "list"))
        self._seed = dice.below(2**40)
        self._labels = dice.pick(("same", "same", "same", "column", "series"))

    def given(self, place: int, folder: Path) -> tuple[Any, Any]:
        """Return X and y of the table (0) or of its neighbour (1)."""
        whole = self._tables[place]
        features = Private(whole.names[:-1], whole.flavours[:-1], [row[:-1] for row in whole.rows])
        labels = Private(("y",), whole.flavours[-1:], [row[-1:] for row in whole.rows])
        if self.container == "list":
            return features.rows, [row[0] for row in labels.rows]
        X = held(features, self.container, Dice(self._seed), folder)
        kind = (
            "objects" if self.container == "pandas" or labels.flavours != ("float",) else "numbers"
        )
        y = held(labels, kind, Dice(self._seed), folder)
        return X, y if self._labels == "column" else y[:, 0]


def _erm_case(
    dice: Dice, gate: Callable[..., Any], columns: int, arguments: dict[str, Any]
) -> Case:
    where = (gate.__name__, "open_ledger", *GUARANTEES, *_ALL)
    if dice.chance(0.2):
        seed = dice.below(2**40)
        return Case(
            where, lambda folder: _asked_of(gate, _strange_pair(Dice(seed), folder), arguments)
        )
    said = arguments.get("neighbours")
    table = Labelled(dice, columns, replace=isinstance(said, str) and said != "add_remove")
    return Case(
        where,
        lambda folder: _asked_of(gate, table.given(0, folder), arguments),
        lambda folder: _asked_of(gate, table.given(1, folder), arguments),
    )


def _asked_of(gate: Callable[..., Any], pair: tuple[Any, Any], arguments: dict[str, Any]) -> Any:
    said = {
        name: pair[1] if isinstance(value, str) and value == _LABELS else value
        for name, value in arguments.items()
    }
    return gate(pair[0], target=pair[1], **said)


def _strange_pair(dice: Dice, folder: Path) -> tuple[Any, Any]:
    X = strange(dice, folder) if dice.chance(0.7) else np.zeros((2, 3))
    y = strange(dice, folder) if dice.chance(0.5) else np.zeros(2)
    return X, y


def constrained(dice: Dice) -> Case:
    base = {
        "row_norm": 1.0,
        "constraint": 1.0,
        "projection": None,
        **_labelled(dice),
        **_asked(dice),
    }
    if dice.chance(0.2):
        base |= {"projection": dice.pick(_KINDS), "dimension": 2}
    if dice.chance(0.3):
        base |= {"groups": _LABELS}
    if dice.chance(0.2):
        base |= {"sample_weight": _LABELS, "weight_bound": 2.0}
    arguments = mutated(dice, base, COMMON | _LEARNING | _DRAWN)
    return _erm_case(dice, dplinear.release_model, dice.pick((1, 2, 3)), arguments)


def projected(dice: Dice) -> Case:
    columns = dice.pick((1, 2, 3))
    source = dice.pick((columns, 6))
    base = {"row_norm": 1.0, "constraint": 1.0, **_labelled(dice), **_asked(dice)}
    base["projected"] = True
    base["projection"] = dice.make(
        (
            lambda: Projection("gaussian", columns, source, 3),
            lambda: np.eye(columns, source),
        )
    )
    own: dict[str, Maker] = {"projection": _map}
    arguments = mutated(dice, base, COMMON | _LEARNING | own)
    return _erm_case(dice, dplinear.release_model, columns, arguments)


def _map(dice: Dice) -> Any:
    if dice.chance(0.4):
        return odd(dice)
    return dice.make(
        (
            lambda: np.eye(2),
            lambda: np.zeros((2, 5)),
            lambda: np.full((2, 2), np.nan),
            lambda: np.zeros((0, 3)),
            lambda: [[1, 0], [0, 1]],
            lambda: np.full((2, 3), 1e308),
            lambda: "gaussian",
            lambda: Projection("sparse", 2, 2, 0),
            lambda: np.zeros((2, 2, 2)),
        )
    )


# Estimators

_MANY: tuple[Any, ...] = (
    (-1, 1),
    [(-1, 1), (0, 10)],
    np.array([[-1, 1]] * 3),
    [(0, 1)] * 9,
    [-1, 1],
    (1, -1),
    [(0, 1), None],
    (-1e300, 1e300),
    (-1e9, 1e9),
    {"x0": (-1, 1)},
    {"x0": (-1, 1), "x1": (0, 10)},
    {"x0": None},
    {},
)
_MOMENTS = ("analyze_gauss", "sketch", "additive_wishart")
_FACES: dict[str, Maker] = {
    "bounds": lambda dice: dice.pick(_MANY) if dice.chance(0.6) else odd(dice),
    "target_bounds": lambda dice: dice.pick(_MANY) if dice.chance(0.6) else odd(dice),
    "row_norm": real,
    "fit_intercept": odd,
    "mechanism": lambda dice: word(
        dice, "auto", *_MOMENTS, "adassp", "whitened_descent", "coinpress", *LEARNERS
    ),
    "alpha": real,
    "pure": odd,
    "classes": _LEARNING["classes"],
    "constraint": _constraint,
    "loss": _LEARNING["loss"],
    "projection": _DRAWN["projection"],
    "dimension": _DRAWN["dimension"],
    "expected_rows": real,
    "rho": real,
    "steps": whole,
    "scale": real,
    "store_precision": odd,
    "assume_centered": odd,
    "n_components": whole,
    "change": real,
    "missing_public": odd,
    "noise": lambda dice: word(dice, "auto", "gaussian", "laplace", "quantile"),
    **{name: maker for name, maker in COMMON.items() if name != "request"},
}
_PUBLIC: dict[str, Any] = {
    "bounds": (-1, 1),
    "target_bounds": (-1, 1),
    "row_norm": None,
    "epsilon": None,
    "delta": None,
    "guarantee": ZCDP(0.5),
}
_IN_A_SET: dict[str, Any] = {
    "row_norm": 1.0,
    "projection": None,
    "mechanism": "noisy_gradient",
}
# How each is called: cheap settings, and how often it comes.
_ESTIMATORS: dict[str, tuple[int, dict[str, Any]]] = {
    "PrivateLinearRegression": (3, {"mechanism": "adassp"}),
    "PrivateRidge": (3, {}),
    "PrivateLasso": (2, {}),
    "PrivateLogisticRegression": (1, {"classes": (0, 1)}),
    "PrivatePCA": (3, {}),
    "PrivateMean": (1, {}),
    "PrivateCovariance": (1, {}),
    "PrivateProjection": (3, {"guarantee": PureDP(1.0)}),
    "PrivateConstrainedRegressor": (1, _IN_A_SET),
    "PrivateConstrainedClassifier": (1, _IN_A_SET | {"classes": (0, 1)}),
    "PrivateSVM": (1, _IN_A_SET | {"classes": (0, 1)}),
}
_NAMES = tuple(name for name, (times, _) in _ESTIMATORS.items() for _ in range(times))


def estimator(dice: Dice) -> Case:
    name = dice.pick(_NAMES)
    kind = getattr(estimators, name)
    known = set(kind().get_params())
    base = {key: value for key, value in (_PUBLIC | _ESTIMATORS[name][1]).items() if key in known}
    makers = {key: maker for key, maker in _FACES.items() if key in known}
    arguments = mutated(dice, base, makers)
    where = (name, "Schema", "open_ledger", *GUARANTEES, *_ALL)
    said = arguments.get("neighbours")
    if dice.chance(0.2):
        seed = dice.below(2**40)
        return Case(
            where, lambda folder: _fitted(kind, arguments, _strange_pair(Dice(seed), folder))
        )
    replace = name == "PrivateProjection" or (isinstance(said, str) and said != "add_remove")
    table = Labelled(dice, dice.pick((1, 2, 3)), replace=replace, lists=True)
    return Case(
        where,
        lambda folder: _fitted(kind, arguments, table.given(0, folder)),
        lambda folder: _fitted(kind, arguments, table.given(1, folder)),
    )


def _fitted(kind: Any, arguments: dict[str, Any], given: Sequence[Any]) -> Any:
    """Fit, and return the release that came of it."""
    model = kind(**arguments)
    if kind is estimators.PrivateProjection:
        model.fit_transform(given[0])
        return model.release_
    model.fit(*given)
    for name in ("moments_", "fit_result_", "release_"):
        if hasattr(model, name):
            return getattr(model, name)
    return next(
        value
        for name, value in vars(model).items()
        if name.endswith("release_") or hasattr(value, "certificate")
    )
