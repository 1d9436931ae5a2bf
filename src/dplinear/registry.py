"""The registry: the mechanisms that every face offers by name, the usual one of a list first.

Gates, estimators, planner, audit, command line and docs all read these lists when they are asked.
A mechanism of dplinear is registered by its place in a list below; one of another package by
`register`, or by an entry point (`plugins.py`). docs/how-to/add-a-mechanism.md is a worked
example.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dplinear import plugins
from dplinear.arguments import rejection, wrong_type
from dplinear.coinpress.regression import CoinPressRegression
from dplinear.convex.learners.contract import ConstrainedMechanism
from dplinear.convex.learners.exponential import Exponential
from dplinear.convex.learners.frank_wolfe import FrankWolfe
from dplinear.convex.learners.mirror_descent import MirrorDescent
from dplinear.convex.learners.noisy_gradient import NoisyGradient
from dplinear.convex.learners.objective_perturbation import ObjectivePerturbation
from dplinear.convex.learners.output_perturbation import OutputPerturbation
from dplinear.convex.learners.whitened import Whitened
from dplinear.descent.huber import HuberDescent
from dplinear.descent.logistic import LogisticDescent
from dplinear.descent.whitened import WhitenedDescent
from dplinear.mechanisms.adassp import AdaSSP
from dplinear.mechanisms.cells.mi_projection import MIProjection
from dplinear.mechanisms.contract import Mechanism, MomentsMechanism, option_names
from dplinear.mechanisms.model import ModelMechanism
from dplinear.mechanisms.moments.additive_wishart import AdditiveWishart
from dplinear.mechanisms.moments.analyze_gauss import AnalyzeGauss
from dplinear.mechanisms.moments.inverse_wishart import InverseWishart
from dplinear.mechanisms.moments.sketch import GaussianSketch
from dplinear.mechanisms.rows.additive_noise import AdditiveNoise
from dplinear.mechanisms.rows.contract import RowsMechanism
from dplinear.mechanisms.rows.projection import ProjectedRows

Kind = TypeVar("Kind", bound=Mechanism)
NUMERICS = ("exact", "idealised")
_RESERVED = ("auto", "all")  # of gates and audits: the planner's choice, every mechanism


class Registered(Mapping[str, type[Kind]], Generic[Kind]):
    """Mechanisms of one contract by name: `own`, which are dplinear's, and then those of others."""

    def __init__(self, *own: type[Kind]) -> None:
        self.own: Mapping[str, type[Kind]] = {kind.name: kind for kind in own}
        self._others: dict[str, type[Kind]] = {}

    def add(self, kind: type[Kind]) -> None:
        """Put a mechanism on the list."""
        self._others[kind.name] = kind

    def __getitem__(self, name: str) -> type[Kind]:
        return self.own[name] if name in self.own else self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> Mapping[str, type[Kind]]:
        _register_installed()
        return {**self.own, **self._others}


MOMENTS: Registered[MomentsMechanism] = Registered(
    AnalyzeGauss, AdditiveWishart, GaussianSketch, InverseWishart
)
SKETCHES: Mapping[str, type[GaussianSketch | MIProjection]] = {
    GaussianSketch.name: GaussianSketch,
    MIProjection.name: MIProjection,
}
ROWS: Registered[RowsMechanism] = Registered(AdditiveNoise, ProjectedRows)
# Of one model of a table's columns, by the loss that it makes small.
MODELS: Mapping[str, Registered[ModelMechanism]] = {
    "squared": Registered(WhitenedDescent, AdaSSP, CoinPressRegression),
    "logistic": Registered(LogisticDescent),
    "huber": Registered(HuberDescent),
}
# Of one model in a constraint set.
CONSTRAINED: Registered[ConstrainedMechanism] = Registered(
    NoisyGradient,
    Whitened,
    FrankWolfe,
    MirrorDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Exponential,
)


def register(kind: type[Kind]) -> type[Kind]:
    """Make a mechanism known by its name to every face; return it, so that it can decorate.

    Requires: a frozen dataclass that keeps one of the contracts (`MomentsMechanism`,
    `ModelMechanism`, `ConstrainedMechanism` or `RowsMechanism`), with a `name` that no other has
    and `numerics`.
    Promises: nothing of what it guarantees. Its certificates name the class, and "auto" never
    chooses it.
    """
    _check(kind)
    known = find(kind.name)
    if known is not None and known is not kind:
        rule = "one that no other mechanism has"
        raise rejection("name", "register", rule, kind.name)
    if known is None:
        _list_for(kind).add(kind)
    return kind


def _check(kind: Any) -> None:
    """Raise unless a class has what every mechanism has."""
    where = "register"
    if not (inspect.isclass(kind) and issubclass(kind, Mechanism)) or inspect.isabstract(kind):
        rule = "a class that keeps the contract of a mechanism, with all of its methods"
        raise wrong_type("kind", where, rule, kind)
    if not getattr(getattr(kind, "__dataclass_params__", None), "frozen", False):
        raise rejection("kind", where, "a frozen dataclass", kind.__qualname__)
    name, numerics = getattr(kind, "name", None), getattr(kind, "numerics", None)
    if not isinstance(name, str) or not name.isidentifier() or name in _RESERVED:
        raise rejection("name", where, "a word such as my_mechanism", name)
    if numerics not in NUMERICS:
        raise rejection("numerics", where, f"one of {', '.join(NUMERICS)}", numerics)


@dataclass(frozen=True)
class Facts:
    """What is told of a mechanism before it is used.

    `releases` is the gate it is for, `options` are its own fields, `package` is whose it is.
    """

    name: str
    releases: str
    numerics: str
    options: tuple[str, ...]
    summary: str
    package: str
    path: str


def catalogue() -> list[Facts]:
    """Return the facts of all registered mechanisms, in the order of the lists above."""
    lists: list[tuple[str, Mapping[str, type[Mechanism]]]] = [
        ("moments", MOMENTS),
        ("sketch", SKETCHES),
        *((f"model, {loss} loss", kinds) for loss, kinds in MODELS.items()),
        ("model in a set", CONSTRAINED),
        ("rows", ROWS),
    ]
    return [_facts(kind, releases) for releases, kinds in lists for kind in kinds.values()]


def _facts(kind: type[Mechanism], releases: str) -> Facts:
    return Facts(
        name=kind.name,
        releases=releases,
        numerics=kind.numerics,
        options=tuple(option_names(kind)),
        summary=(inspect.getdoc(kind) or "").partition("\n")[0],
        package=kind.__module__.partition(".")[0],
        path=f"{kind.__module__}.{kind.__qualname__}",
    )


def class_names() -> frozenset[str]:
    """Return the names of all mechanisms' classes, as their errors have them."""
    return frozenset(one.path.rpartition(".")[2] for one in catalogue())


def find(name: str) -> type[Mechanism] | None:
    """Return the mechanism of that name, if there is one."""
    return _known_mechanisms().get(name)


def is_own(kind: type[Mechanism]) -> bool:
    """Return whether a mechanism is dplinear's, and not of another package or of a user."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _lists() -> list[Registered]:  # type: ignore[type-arg]  # of any contract
    return [MOMENTS, ROWS, *MODELS.values(), CONSTRAINED]


def _known_mechanisms() -> dict[str, type[Mechanism]]:
    """Return all that is known by name, without looking for what is installed."""
    found: dict[str, type[Mechanism]] = {MIProjection.name: MIProjection}
    for each in _lists():
        found |= {**each.own, **each._others}  # noqa: SLF001 - of this file
    return found


def _list_for(kind: type[Mechanism]) -> Registered:  # type: ignore[type-arg]  # of any contract
    if issubclass(kind, ModelMechanism):
        if kind.loss not in MODELS:
            raise rejection("loss", "register", f"one of {', '.join(MODELS)}", kind.loss)
        return MODELS[kind.loss]
    if issubclass(kind, MomentsMechanism):
        return MOMENTS
    if issubclass(kind, RowsMechanism):
        return ROWS
    if issubclass(kind, ConstrainedMechanism):
        return CONSTRAINED
    rule = "a mechanism for moments, models or rows"
    raise wrong_type("kind", "register", rule, kind)


def _register_installed() -> None:
    for found in plugins.installed():
        if inspect.isclass(found) and issubclass(found, Mechanism):
            register(found)
