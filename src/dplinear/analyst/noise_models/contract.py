"""The contract of a noise model: what is known in public about the noise of a released matrix.

`matrices.py` has the usual ones. All are in the cells' units, in which G is the sum of outer
products of rows in [−1, 1]^d.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from dplinear import plugins
from dplinear.arguments import rejection
from dplinear.arrays import Floats
from dplinear.noise.simulation import Generator


class Pivot(NamedTuple):
    """What is exact about regressions on a matrix whose noise is proportional to the matrix.

    The first-order variance times `factor` gives Student's t with `freedom` degrees, where the law
    adds no ridge; `harmless` is the mean square of the relative noise that this already allows for.
    """

    factor: float
    freedom: float
    harmless: float


NOISE_MODELS: dict[str, type["NoiseModel"]] = {}  # by the kind that files name


class NoiseModel(ABC):
    """The law of a released matrix, given the true one.

    Requires: arrays of shape (..., d, d); `direction` symmetric.
    Promises: `unbiased_estimate` has mean G; `variance` is that of ⟨direction, unbiased⟩ = Σ
    aᵢⱼmᵢⱼ.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Let files name the model by its kind."""
        if "kind" in vars(cls):
            NOISE_MODELS[cls.kind] = cls

    @property
    def known(self) -> bool:
        """Whether all of it is public: without, there is only the matrix as it was released."""
        return True

    @property
    def dimension(self) -> int | None:
        """The number of features that it is of; None: of any number."""
        return None

    @abstractmethod
    def unbiased_estimate(self, released: Floats) -> Floats:
        """Return the estimate of G whose mean is G; it need not be positive definite."""

    @abstractmethod
    def positive(self, released: Floats) -> Floats:
        """Return the released matrix on the scale of G, its mean not removed."""

    @abstractmethod
    def variance(self, direction: Floats, gram: Floats) -> Floats:
        """Return the variance of ⟨direction, unbiased⟩ where the true matrix is `gram`."""

    @abstractmethod
    def sandwich(self, middle: Floats, gram: Floats) -> Floats:
        """Return E[N·middle·N], N = unbiased − G, for a symmetric `middle`.

        With middle = vvᵀ it is the covariance matrix of N·v.
        """

    @abstractmethod
    def spread(self, gram: Floats) -> float:
        """Return where the spectrum of unbiased − G ends in high dimension.

        That is above the expected spectral norm, by 3% at d = 40 and 16% at d = 5 for Gaussian
        noise, 10% and 60% for Wishart noise; up to twice it where a proportional law meets one
        dominant direction.
        """

    @abstractmethod
    def draw(self, gram: Floats, generator: Generator) -> Floats:
        """Draw released matrices for true ones, one for each, in a simulation."""

    def log_ratio(self, released: Floats, one: Floats, other: Floats) -> Floats | None:
        """Return ln p_one/p_other of released matrices, for audits; None if nobody knows it.

        `one` and `other` are the true matrices of two neighbouring tables.
        """
        return None

    def part(self, dimension: int, kept: Sequence[int]) -> "NoiseModel":
        """Return the law of the block of the rows and columns `kept` out of `dimension`."""
        return self

    def pivot(self, dimension: int, features: int) -> Pivot:
        """Return the pivot of a regression on so many of the matrix's columns."""
        return Pivot(factor=1.0, freedom=math.inf, harmless=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain JSON."""
        return {"kind": self.kind, **vars(self)}

    @staticmethod
    def from_dict(content: Any) -> "NoiseModel":
        """Build a law from what `to_dict` returned."""
        if isinstance(content, Mapping) and str(content.get("kind")) not in NOISE_MODELS:
            plugins.installed()  # it may be that of another package's mechanism
        return read_kind(content, NOISE_MODELS, "NoiseModel.from_dict")


_Kind = TypeVar("_Kind")


def read_kind(content: Any, kinds: Mapping[str, type[_Kind]], where: str) -> _Kind:
    """Build an object of one of several dataclasses from its fields and the name of its kind."""
    if not isinstance(content, Mapping) or str(content.get("kind")) not in kinds:
        raise rejection("content", where, "a law of a known kind", content)
    fields = {name: value for name, value in content.items() if name != "kind"}
    kind = kinds[content["kind"]]
    if set(fields) != {entry.name for entry in dataclasses.fields(kind)}:  # type: ignore[arg-type]
        raise rejection("content", where, f"the numbers of {kind.__name__}", content)
    return kind(**fields)


def add_ridge(gram: Floats, ridge: float | Floats) -> Floats:
    """Return H: the matrix with a ridge, or ridges, on its diagonal."""
    return np.asarray(gram + ridge * np.eye(gram.shape[-1]))


def size(whole: Floats) -> tuple[float, float]:
    """Return |H| and tr(H)/|H|, without what negative eigenvalues H has."""
    values = np.maximum(np.linalg.eigvalsh(whole), 0.0)
    largest = float(values[-1])
    return largest, float(values.sum()) / largest if largest else 1.0


def isotropic(middle: Floats) -> Floats:
    """Return tr(C)·I + C."""
    trace = np.trace(middle, axis1=-2, axis2=-1)[..., None, None]
    return np.asarray(trace * np.eye(middle.shape[-1]) + middle)


def weighted_products(middle: Floats, whole: Floats) -> tuple[Floats, Floats]:
    """Return tr(CH)·H and HCH."""
    product = whole @ middle
    trace = np.trace(product, axis1=-2, axis2=-1)[..., None, None]
    return np.asarray(trace * whole), np.asarray(product @ whole)


def quadratic(direction: Floats, whole: Floats) -> Floats:
    """Return tr(AHAH)."""
    product = direction @ whole
    return np.asarray(np.einsum("...ij,...ji->...", product, product))


def bartlett(shape: tuple[int, ...], degrees: float, generator: Generator) -> Floats:
    """Draw lower triangles A with A Aᵀ ~ Wishart(I, degrees), for simulation."""
    triangle = np.tril(generator.standard_normal(shape), -1)
    d = shape[-1]
    squares = generator.chisquare(degrees - np.arange(d), shape[:-1])
    triangle[..., np.arange(d), np.arange(d)] = np.sqrt(squares)
    return triangle
