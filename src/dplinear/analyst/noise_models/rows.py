"""The noise models of released rows.

A further kind is one frozen dataclass with a `kind`, by which files name it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dplinear import plugins
from dplinear.analyst.noise_models.contract import read_kind
from dplinear.analyst.noise_models.matrices import NoisyRows
from dplinear.arguments import choice, integer, positive, real, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.schema import Schema

ROW_NOISE_MODELS: dict[str, type["RowNoiseModel"]] = {}  # by the kind that files name


class RowNoiseModel(ABC):
    """The law of released rows, given the true ones."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Let files name the model by its kind."""
        if "kind" in vars(cls):
            ROW_NOISE_MODELS[cls.kind] = cls

    @abstractmethod
    def check(self, schema: Schema, names: tuple[str, ...]) -> None:
        """Raise ValueError unless released columns of these names can follow the law."""

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain JSON."""
        plain = {name: _plain(value) for name, value in vars(self).items()}
        return {"kind": self.kind, **plain}

    @staticmethod
    def from_dict(content: Any) -> "RowNoiseModel":
        """Build a law from what `to_dict` returned."""
        if isinstance(content, Mapping) and str(content.get("kind")) not in ROW_NOISE_MODELS:
            plugins.installed()  # it may be that of another package's mechanism
        return read_kind(content, ROW_NOISE_MODELS, "RowNoiseModel.from_dict")


def _plain(value: object) -> object:
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class AdditiveRows(RowNoiseModel):
    """Rows plus independent Gaussian noise.

    `variances` has one for each feature of the schema, in the cells' units; 0 where there is no
    noise, as on the intercept.
    """

    variances: tuple[float, ...]
    kind: ClassVar[str] = "additive noise"

    def __post_init__(self) -> None:
        if not isinstance(self.variances, list | tuple):  # files hold lists
            raise wrong_type("variances", "AdditiveRows", "a list of numbers", self.variances)
        read = tuple(real(v, "variances", "AdditiveRows", low=0) for v in self.variances)
        object.__setattr__(self, "variances", read)

    def check(self, schema: Schema, names: tuple[str, ...]) -> None:
        """Raise unless there is a column for each feature, and a variance."""
        own = tuple(feature.name for feature in schema.features if feature.factors)
        if names != own or len(self.variances) != schema.dimension:
            raise rejection("columns", "AdditiveRows", "the schema's features", ", ".join(names))
        if schema.has_intercept and self.variances[0] > 0:
            raise rejection("variances", "AdditiveRows", "0 on the intercept", self.variances[0])

    def moments(self, rows: int) -> NoisyRows:
        """Return the law of the rows' second moments."""
        return NoisyRows(self.variances, rows)


NOISES = ("laplace", "gaussian", "perturbed", "perturbed gaussian")
PROJECTIONS = ("gaussian", "rademacher", "orthonormal")
_PROJECTED = "ProjectedRows"


def column_names(k: int) -> tuple[str, ...]:
    """Return the names of the released numbers."""
    return tuple(f"z{number}" for number in range(1, k + 1))


@dataclass(frozen=True)
class ProjectedRows(RowNoiseModel):
    """Rows of `dimension` cells, times P, plus noise: k numbers, in the cells' units.

    `noise` is "laplace" or "gaussian", independent in each of the k numbers, or "perturbed"
    (Laplace) or "perturbed gaussian": independent in each cell before the projection, so that the
    numbers of a row are correlated. `scale` is the b or σ of the independent draws; `variance` that
    of the noise in a released number, their mean where they differ. `projection` is what P was
    drawn as: entries N(0, 1/k), ±1/√k, or orthonormal columns times √(d/k). Where it is `public`,
    `matrix` has it, as integers/√(k·4^digits). `label` says how the label beside the rows was made,
    if there is one.

    E‖xP‖² = ‖x‖² over draws of P, and the squared distance of two rows is off by 2k·variance on
    average over the noise.
    """

    noise: str
    k: int
    dimension: int
    scale: float
    variance: float
    projection: str
    public: bool = False
    matrix: Mapping[str, Any] | None = None
    label: Mapping[str, Any] | None = None
    kind: ClassVar[str] = "projected rows"

    def __post_init__(self) -> None:
        choice(self.noise, "noise", _PROJECTED, NOISES)
        choice(self.projection, "projection", _PROJECTED, PROJECTIONS)
        integer(self.k, "k", _PROJECTED, low=1)
        integer(self.dimension, "dimension", _PROJECTED, low=1)
        positive(self.scale, "scale", _PROJECTED)
        positive(self.variance, "variance", _PROJECTED)
        if not isinstance(self.public, bool):
            raise wrong_type("public", _PROJECTED, "true or false", self.public)
        for name in ("matrix", "label"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Mapping):
                raise wrong_type(name, _PROJECTED, "a mapping, or none", value)
        if self.public != (self.matrix is not None):
            raise rejection("matrix", _PROJECTED, "there if and only if it is public", self.public)
        if self.matrix is not None:
            self._read_matrix()

    def _read_matrix(self) -> Floats:
        assert self.matrix is not None  # noqa: S101 - asked for where it is there
        rule = f"integers in {self.dimension} lists of {self.k}, and their digits"
        try:
            integers = np.array(self.matrix["integers"], np.float64)
            digits = integer(self.matrix["digits"], "matrix.digits", _PROJECTED, low=0, high=50)
        except (KeyError, TypeError, ValueError):
            raise rejection("matrix", _PROJECTED, rule, "something else") from None
        fits = integers.shape == (self.dimension, self.k) and np.isfinite(integers).all()
        if not fits or (np.rint(integers) != integers).any():
            raise rejection("matrix", _PROJECTED, rule, f"shape {integers.shape}")
        return np.asarray(integers / (np.sqrt(self.k) * 2.0**digits))

    @property
    def projection_matrix(self) -> Floats | None:
        """P, where it is public."""
        return None if self.matrix is None else self._read_matrix()

    def check(self, schema: Schema, names: tuple[str, ...]) -> None:
        """Raise unless there are k released numbers, and the label if there is one."""
        beside = () if self.label is None else (str(self.label.get("column")),)
        if names != column_names(self.k) + beside:
            raise rejection("columns", _PROJECTED, "k numbers, and the label", ", ".join(names))
        if self.dimension > schema.dimension or any(n not in schema.columns for n in beside):
            raise rejection("dimension", _PROJECTED, "the schema's features", self.dimension)
