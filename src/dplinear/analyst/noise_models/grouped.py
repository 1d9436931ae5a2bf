"""The noise of moments that are assembled from those of groups: each group's noise counts once.

A feature of the assembled matrix is one of the groups' own features, in some of the groups, and 0
elsewhere: a common feature is there in all of them, and the indicator of a group is the intercept
of that group alone. So an entry is the sum of the groups' entries that both features are in, and
entries that a group has in common are correlated (docs/theory/fixed-effects.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dplinear.analyst.noise_models.contract import NoiseModel
from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.arguments import integer, positive, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.noise.simulation import Generator

_WHERE = "GroupedGaussian"
_MOST = 2**16
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class GroupedGaussian(NoiseModel):
    """Σ T N Tᵀ over groups, each N symmetric normal noise with these variances, independent.

    `sources` has, for each feature, its index in the groups' matrices; `members` the groups that it
    is in. T of a group maps its features to those of the whole.
    """

    diagonal: float
    off_diagonal: float
    sources: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    kind: ClassVar[str] = "grouped gaussian"

    def __post_init__(self) -> None:
        positive(self.diagonal, "diagonal", _WHERE)
        positive(self.off_diagonal, "off_diagonal", _WHERE)
        sources = _indices(self.sources, "sources")
        listed: Any = self.members  # perhaps what a file held
        if not isinstance(listed, list | tuple) or len(listed) != len(sources):
            raise wrong_type("members", _WHERE, "a list of groups for each feature", listed)
        members = tuple(_indices(own, "members") for own in listed)
        object.__setattr__(self, "sources", sources)
        object.__setattr__(self, "members", members)

    @property
    def dimension(self) -> int:
        """The number of features of the whole."""
        return len(self.sources)

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain JSON."""
        return {
            "kind": self.kind,
            "diagonal": self.diagonal,
            "off_diagonal": self.off_diagonal,
            "sources": list(self.sources),
            "members": [list(own) for own in self.members],
        }

    @cached_property
    def _of_group(self) -> SymmetricGaussian:
        return SymmetricGaussian(self.diagonal, self.off_diagonal)

    @cached_property
    def _maps(self) -> list[tuple[Indices, Floats]]:
        """For each group, the features that are in it, and T, from the group's to those."""
        width = max(self.sources, default=0) + 1
        inside: dict[int, list[int]] = {}
        for index, groups in enumerate(self.members):
            for group in groups:
                inside.setdefault(group, []).append(index)
        found = []
        for own in inside.values():
            t = np.zeros((len(own), width))
            t[np.arange(len(own)), [self.sources[index] for index in own]] = 1.0
            found.append((np.array(own), t))
        return found

    def scaled(self, factor: float) -> "GroupedGaussian":
        """Return the noise model of the matrix times a number above 0."""
        variances = (factor**2 * self.diagonal, factor**2 * self.off_diagonal)
        return GroupedGaussian(*variances, self.sources, self.members)

    def unbiased_estimate(self, released: Floats) -> Floats:
        """Return the assembled matrix."""
        return released

    def positive(self, released: Floats) -> Floats:
        """Return the assembled matrix, which need not be positive definite."""
        return released

    def variance(self, direction: Floats, gram: Floats) -> Floats:
        """Return the sum of the groups' variances of ⟨TᵀAT, N⟩."""
        total = np.zeros(direction.shape[:-2])
        for own, t in self._maps:
            total = total + self._of_group.variance(t.T @ _block(direction, own) @ t, gram)
        return np.asarray(total)

    def sandwich(self, middle: Floats, gram: Floats) -> Floats:
        """Return Σ T·E[N·TᵀCT·N]·Tᵀ."""
        total = np.zeros(middle.shape)
        for own, t in self._maps:
            inner = self._of_group.sandwich(t.T @ _block(middle, own) @ t, gram)
            total[..., own[:, None], own] += t @ inner @ t.T
        return total

    def spread(self, gram: Floats) -> float:
        """Return 2·√|E[N²]|, the edge of the semicircle law where all directions are alike."""
        square = self.sandwich(np.eye(self.dimension), gram)
        return 2 * math.sqrt(float(np.linalg.eigvalsh(square)[-1]))

    def draw(self, gram: Floats, generator: Generator) -> Floats:
        """Add fresh noise, one draw for each group."""
        total = np.array(gram)
        for own, t in self._maps:
            nothing = np.zeros((*gram.shape[:-2], t.shape[1], t.shape[1]))
            noise = self._of_group.draw(nothing, generator)
            total[..., own[:, None], own] += t @ noise @ t.T
        return total

    def part(self, dimension: int, kept: Sequence[int]) -> "GroupedGaussian":
        """Return the law of the block of some of the features."""
        sources = tuple(self.sources[index] for index in kept)
        members = tuple(self.members[index] for index in kept)
        return GroupedGaussian(self.diagonal, self.off_diagonal, sources, members)


def _block(matrix: Floats, own: Indices) -> Floats:
    return np.asarray(matrix[..., own[:, None], own])


def _indices(value: Any, parameter: str) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise wrong_type(parameter, _WHERE, "a list of indices", value)
    read = tuple(integer(each, parameter, _WHERE, low=0, high=_MOST) for each in value)
    if parameter == "members" and len(set(read)) < len(read):
        raise rejection(parameter, _WHERE, "free of groups named twice", list(read))
    return read
