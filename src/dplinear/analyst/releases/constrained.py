"""One linear model of a constraint set, released for one question: loss + set + learner.

`theta` is a point of the set, in the units in which the learner saw the table: rows of norm at most
1, labels within ±1. `units.py` says how rows and labels came to those units.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from dplinear.analyst import notebook
from dplinear.analyst.regression.classes import check_logistic, likelier, probabilities
from dplinear.analyst.regression.summary import Summary, number
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate, Scalar
from dplinear.analyst.releases.sparse_vector import SparseVector
from dplinear.analyst.releases.units import Label, UnitConversion
from dplinear.arguments import choice, integer, real, rejection, wrong_type
from dplinear.arrays import Array, Floats

KIND = "linear"
LOSSES = ("squared", "huber", "logistic", "hinge")
WEIGHT_BOUND = "weight_bound"  # among a certificate's parameters, where rows had survey weights
_CLASSES = ("logistic", "hinge")
_FACTS = [
    "certificate", "loss", "reading", "constraint", "projection", "lift", "plan", "rows", "size"
]  # fmt: skip
_LIFT = {"method": str, "residual": float, "gauge": float}
_MOST_SHOWN = 10
_LONGEST = 2_000
_MOST = 1_000

Facts = Mapping[str, Scalar]


@dataclass(frozen=True, eq=False, repr=False)
class ConstrainedRelease:
    """A linear model whose coefficients lie in a public convex set.

    `source` is θ, held sparse; `theta` all of it. `compressed` is Φθ, where the learner worked in
    a projection, else None. `constraint` and `projection` describe the set and Φ, which anyone can
    make again from it; `lift` says how θ came from Φθ: `method`, `residual` (of Φθ), and `gauge`,
    which is at most 1 within the set. `rows` is the number of rows where it is public. `plan` has
    what was foreseen beforehand, such as the dimension that a theorem asks for.
    """

    source: SparseVector
    loss: str
    units: UnitConversion
    certificate: Certificate
    constraint: Facts
    projection: Facts | None = None
    compressed: Floats | None = None
    lift: Facts = field(default_factory=dict)
    plan: Facts = field(default_factory=dict)
    rows: int | None = None
    kind: ClassVar[str] = KIND

    def __post_init__(self) -> None:
        where = "ConstrainedRelease"
        choice(self.loss, "loss", where, LOSSES)
        if (self.units.classes is not None) != (self.loss in _CLASSES):
            rule = "with classes for a loss of labels, and with target bounds for any other"
            raise rejection("units", where, rule, self.loss)
        if self.units.features(self.source.size) < 1:
            raise rejection("source", where, "of at least one feature", self.source.size)
        if (self.projection is None) != (self.compressed is None):
            raise rejection("compressed", where, "there where a projection is", "one of the two")
        for name in ("constraint", "projection", "lift", "plan"):
            facts = getattr(self, name)
            if facts is not None:
                object.__setattr__(self, name, _facts(facts, name, where))
        if self.compressed is not None:
            self.compressed.flags.writeable = False

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _assemble, (
            ConstrainedKind().to_parts(self),
        )  # read-only mappings cannot be pickled

    @property
    def theta(self) -> Floats:
        """The point of the set; the intercept's coordinate last, if there is one."""
        return self.source.dense

    @property
    def features(self) -> int:
        """How many features a row has."""
        return self.units.features(self.source.size)

    @property
    def coefficients(self) -> Floats:
        """A number for each feature, in its own units."""
        return self.theta[: self.features] * (self.units.scale * self.units.target_scale)

    @property
    def intercept(self) -> float:
        """The prediction where all features are 0, in the target's own units."""
        return self.units.offset(self.source.last)

    def largest(self, count: int) -> list[tuple[int, float]]:
        """Return the features with the largest coefficients, and these: at most so many, none 0.

        Promises: no room for features whose coefficients are 0, however many a file says there are.
        """
        own = self.source.indices < self.features
        indices, steepness = self.source.indices[own], self.units.scale * self.units.target_scale
        numbers = self.source.values[own] * steepness
        order = np.argsort(-np.abs(numbers), kind="stable")[:count].tolist()
        return [(int(indices[n]), float(numbers[n])) for n in order if numbers[n]]

    def decision_function(self, X: Any) -> Floats:
        """Return the linear score, row by row: values; log-odds or margins of the second class.

        Requires: an array or a SciPy sparse matrix, which stays sparse; cells that are NaN count
        as 0, as they did; nothing is clipped.
        """
        own = self.source
        if self.units.constant is not None:
            kept = own.indices < self.features
            own = SparseVector(self.features, own.indices[kept], own.values[kept])
        steepness = self.units.scale * self.units.target_scale
        return np.asarray(own.products(X, "decision_function") * steepness + self.intercept)

    @property
    def classes(self) -> tuple[Label, Label] | None:
        """What `predict` chooses from, for a loss of labels; otherwise None."""
        return self.units.classes

    def predict(self, X: Any) -> Array:
        """Return what the target is expected to be, row by row: a value, or one of the classes.

        Requires what `decision_function` does.
        """
        found = self.decision_function(X)
        return found if self.classes is None else likelier(found, self.classes)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both classes, a column for each: logistic losses only."""
        check_logistic(self.loss)
        return probabilities(self.decision_function(X))

    def summary(self) -> Summary:
        """Return what the release says, for a terminal or a notebook."""
        lines, shown = self._lines(), self._largest()
        width = max((len(name) for name, _ in shown), default=0)
        table = [f"  {name.ljust(width)}  {value}" for name, value in shown]
        text = "\n".join(
            [*(f"{label}: {what}" if label else what for label, what in lines), *table]
        )
        return Summary(text, notebook.card(lines[0][1], notebook.pairs([*lines[1:], *shown])))

    def _lines(self) -> list[tuple[str, str]]:
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        what = f"{self.loss.capitalize()} model of {self.features:,} features{rows}"
        lines = [
            ("", what),
            ("guarantee", self.certificate.guarantee),
            ("learner", self.certificate.mechanism),
            ("set", _format_facts(self.constraint)),
            ("projection", "none" if self.projection is None else _format_facts(self.projection)),
        ]
        bound = self.certificate.parameters.get(WEIGHT_BOUND)
        if bound is not None:
            lines.append(("survey weights", f"of at most {bound}"))
        lines += [(name, _format_facts(facts)) for name, facts in self._more() if facts]
        if self.certificate.simulated:
            lines.append(("SIMULATED", "the noise was seeded, and protects nobody"))
        kept = "all" if self.source.count == self.source.size else f"{self.source.count:,}"
        return [*lines, ("coefficients", f"{kept} are not 0; the largest:")]

    def _more(self) -> list[tuple[str, Facts]]:
        return [("lift", self.lift), ("plan", self.plan)]

    def _largest(self) -> list[tuple[str, str]]:
        """Return the intercept, if there is one, and the largest coefficients, by place."""
        shown = [(f"x{index}", number(value, 0.0)) for index, value in self.largest(_MOST_SHOWN)]
        if self.units.constant is None:
            return shown
        return [("intercept", number(self.intercept, 0.0)), *shown]

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to one file that `dplinear.load` reads anywhere."""
        files.save(self, path, overwrite=overwrite)

    def _repr_html_(self) -> str:
        return f"{self.summary().html}\n{self.certificate._repr_html_()}"

    def describe(self) -> str:
        """Return in a few lines the model, its set, and under which guarantee it was released."""
        return f"{self.summary()}\n{self.certificate}"

    def __repr__(self) -> str:
        return self.describe()


def _format_facts(facts: Facts) -> str:
    shown = [
        f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in facts.items()
    ]
    return ", ".join(shown)


def _facts(facts: Any, name: str, where: str) -> Facts:
    """Return a read-only mapping of names to text, finite numbers, truth values or None."""
    rule = "a mapping of names to text or finite numbers"
    if not isinstance(facts, Mapping):
        raise wrong_type(name, where, rule, facts)
    if len(facts) > _MOST:
        raise rejection(name, where, f"{rule}, at most {_MOST}", f"{len(facts)} of them")
    return MappingProxyType({_text(key, name, where): _scalar(facts[key], name) for key in facts})


def _text(value: object, name: str, where: str) -> str:
    if not (isinstance(value, str) and len(value) <= _LONGEST and value.isprintable()):
        raise wrong_type(name, where, f"made of printable text, at most {_LONGEST} long", value)
    return value


def _scalar(value: Any, name: str) -> Scalar:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, name, "ConstrainedRelease")
    if isinstance(value, int | np.integer):
        return int(value)
    return real(value, name, "ConstrainedRelease")


class ConstrainedKind:
    """Models of a constraint set in files: θ by its indices and values where few are not 0."""

    name = KIND
    release = ConstrainedRelease

    def to_parts(self, release: ConstrainedRelease) -> files.Parts:
        """Take a release apart."""
        facts = {
            "certificate": release.certificate.to_dict(),
            "loss": release.loss,
            "reading": release.units.to_dict(),
            "constraint": dict(release.constraint),
            "projection": None if release.projection is None else dict(release.projection),
            "lift": dict(release.lift),
            "plan": dict(release.plan),
            "rows": release.rows,
            "size": release.source.size,
        }
        arrays = _vector_arrays(release.source)
        if release.compressed is not None:
            arrays["compressed"] = release.compressed[None, :]
        return files.Parts(self.name, facts, arrays)

    def from_parts(self, parts: files.Parts) -> ConstrainedRelease:
        """Put a release together, or raise."""
        where = f"a release of kind {self.name}"
        if list(parts.facts) != _FACTS:
            raise rejection("keys", where, ", ".join(_FACTS), ", ".join(parts.facts))
        facts, arrays = parts.facts, dict(parts.arrays)
        compressed = arrays.pop("compressed", None)
        if compressed is not None and len(compressed) != 1:
            raise rejection("compressed", where, "one row of numbers", compressed.shape)
        size = integer(facts["size"], "size", where, low=1)
        source = _vector(size, arrays, where)
        if list(_vector_arrays(source)) != list(arrays):
            raise rejection("arrays", where, "those that take less room", ", ".join(arrays))
        _check_lift(facts["lift"], where)
        for name in ("constraint", "plan"):  # the projection alone may be none
            if facts[name] is None:
                raise rejection(name, where, "facts by name", None)
        return ConstrainedRelease(
            source=source,
            loss=facts["loss"],
            units=UnitConversion.from_dict(facts["reading"]),
            certificate=Certificate.from_dict(facts["certificate"]),
            constraint=facts["constraint"],
            projection=facts["projection"],
            compressed=None if compressed is None else compressed[0].copy(),
            lift=facts["lift"],
            plan=facts["plan"],
            rows=None if facts["rows"] is None else integer(facts["rows"], "rows", where, low=0),
        )


def _vector_arrays(vector: SparseVector) -> dict[str, Floats]:
    """Return the arrays that hold a vector: all of it, or indices and values if that is less."""
    if 0 < 2 * vector.count < vector.size:
        return {
            "places": vector.indices.astype(np.float64)[None, :],
            "values": np.array(vector.values)[None, :],
        }
    if not vector.count:  # no array in a file is empty
        return {"places": np.zeros((1, 1)), "values": np.zeros((1, 1))}
    return {"theta": np.array(vector.dense)[None, :]}


def _vector(size: int, arrays: Mapping[str, Floats], where: str) -> SparseVector:
    if any(len(array) != 1 for array in arrays.values()):
        raise rejection("arrays", where, "of one row each", "another number of rows")
    if list(arrays) == ["theta"]:
        if arrays["theta"].shape[1] != size:
            raise rejection("theta", where, f"of {size} numbers", arrays["theta"].shape[1])
        return SparseVector.of(arrays["theta"][0])
    if list(arrays) != ["places", "values"]:
        raise rejection("arrays", where, "theta, or places and values", ", ".join(arrays))
    indices, values = arrays["places"][0], arrays["values"][0]
    if indices.tolist() == [0.0] and values.tolist() == [0.0]:
        indices, values = indices[:0], values[:0]
    if (indices != np.floor(indices)).any():
        raise rejection("places", where, "whole numbers", "others")
    return SparseVector(size, indices.astype(np.int64), values)


def _check_lift(lift: Any, where: str) -> None:
    if not isinstance(lift, Mapping) or list(lift) not in ([], list(_LIFT)):
        raise rejection("lift", where, "made of " + ", ".join(_LIFT), lift)


def _assemble(parts: files.Parts) -> ConstrainedRelease:
    return ConstrainedKind().from_parts(parts)


files.register(ConstrainedKind())
