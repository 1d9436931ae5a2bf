"""Public random projections Φ: matrices of integers that their kind, sizes and seed name.

Kasiviswanathan and Jin 2016 multiply rows and sets by Φ = Φ̃/√m, Φ̃ of independent entries of mean
0 and variance 1, subgaussian. Here A is made of random bits by integer arithmetic alone, so that
(kind, target, source, seed, density) give the same matrix on every machine and in every version.

| kind | an entry of A | variance | subgaussian with |
|---|---|---|---|
| gaussian | how many of 64 fair bits are 1, less 32 | 16 | 16 |
| rademacher | ±1 | 1 | 1 |
| sparse, very_sparse | ±1 with chance p/2 each, else 0; p = 1/3, 1/√source, or `density` | p | 1 |

Entries are symmetric, so their mean is 0. A fair bit less ½ has variance ¼ and, by Hoeffding's
lemma, E exp(t·bit) ≤ exp(t²/8): 64 of them have variance 16 and are subgaussian with 16, no more
than their variance, as a Gaussian is. With worth = 1/√(target·variance), E‖Φx‖² = ‖x‖² for all x.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dplinear.arguments import choice, integer, real, rejection
from dplinear.arrays import Floats
from dplinear.exact.integers import shorten
from dplinear.noise.entropy import SeededEntropy, Words, words

KINDS = ("gaussian", "rademacher", "sparse", "very_sparse")

_MOST_TARGET = 1 << 20
_MOST_SOURCE = (1 << 31) - 1  # of 32-bit indices; products are exact up to 2^56 (see `products`)
_CHUNK = 1 << 17  # entries that are drawn at once, from a key of their own
_ODDS = 1 << 32  # an entry's chance of being 0 or not is a multiple of 1/_ODDS

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Projection:
    """A map Φ from R^`source` to R^`target`, drawn by `seed`. Public.

    Requires: a `kind` of `KINDS`; `density`, for the sparse kinds only: the chance of an entry
    that is not 0, rounded to an even multiple of 2^−32.
    Promises: the same matrix for the same arguments, wherever. E ΦᵀΦ = I over seeds, but for the
    rounding of `unit`.
    Departs from the paper: entries lie on a grid, so that projected rows are exact; the binomial
    stands for the Gaussian. No promise of privacy rests on the draw: projected rows are clipped.
    """

    kind: str
    target: int
    source: int
    seed: int
    density: float | None = None
    unit: float = field(init=False)
    _columns: Any = field(init=False, repr=False)  # A transposed, (source, target): float64

    def __post_init__(self) -> None:
        where = "Projection"
        choice(self.kind, "kind", where, KINDS)
        target = integer(self.target, "target", where, low=1, high=_MOST_TARGET)
        source = integer(self.source, "source", where, low=1, high=_MOST_SOURCE)
        seed = integer(self.seed, "seed", where, low=0)
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "seed", seed)
        odds = self._odds(where)
        object.__setattr__(self, "density", odds / _ODDS if self._thin else None)
        variance = odds / _ODDS if self._thin else {"gaussian": 16.0, "rademacher": 1.0}[self.kind]
        object.__setattr__(self, "unit", 1.0 / math.sqrt(target * variance))
        drawn = self._sparse_columns(odds) if self._thin else self._dense_columns()
        object.__setattr__(self, "_columns", drawn)

    @property
    def _thin(self) -> bool:
        return self.kind in {"sparse", "very_sparse"}

    def _odds(self, where: str) -> int:
        """Return the chance of an entry that is not 0, in multiples of 2^−32."""
        if not self._thin:
            if self.density is not None:
                rule = "None unless the kind is sparse or very_sparse"
                raise rejection("density", where, rule, self.density)
            return _ODDS
        usual = 1 / 3 if self.kind == "sparse" else 1.0 / math.sqrt(self.source)
        given = usual if self.density is None else self.density
        density = real(given, "density", where, low=2.0**-31, high=1.0)
        return 2 * round(density * (_ODDS // 2))

    @property
    def integers(self) -> Any:
        """A, of shape (target, source): an array of float64, or a sparse one. Read-only."""
        return self._columns.T

    def facts(self) -> dict[str, Any]:
        """Return the arguments that make this projection again."""
        facts = {"kind": self.kind, "target": self.target, "source": self.source, "seed": self.seed}
        return facts | ({"density": self.density} if self._thin else {})

    def forward(self, vector: Floats) -> Floats:
        """Return Φθ for a vector, or for each column of a matrix."""
        return np.asarray(self._columns.T @ vector) * self.unit

    def adjoint(self, vector: Floats) -> Floats:
        """Return Φᵀg for a vector, or for each column of a matrix."""
        return np.asarray(self._columns @ vector) * self.unit

    def columns(self, indices: npt.ArrayLike) -> Floats:
        """Return chosen columns of Φ, of shape (target, chosen)."""
        chosen: Any = self._columns[np.atleast_1d(np.asarray(indices, np.intp))]
        return np.asarray((chosen.toarray() if self._thin else chosen).T * self.unit)

    def products(self, rows: Any) -> Floats:
        """Return A·rows, exactly.

        Requires: shape (source, rows), integers in float64, every column of norm at most 2^20.
        Promises: integers, each column the same whatever stands beside it. A row of A has entries
        of at most 2^5, so its norm is at most 2^5·√source; by Cauchy–Schwarz every partial sum of
        a product is an integer of at most 2^25·√source < 2^53, which float64 holds, in any order.
        """
        given = _is_sparse(rows)
        if given and not self._thin:
            return np.asarray((rows.T @ self._columns).T)
        found = self._columns.T @ rows
        return np.asarray(found.toarray() if given else found)

    def project(self, rows: Any, norm: int) -> Floats:
        """Return Φ·rows, rounded to integers and clipped.

        Requires: rows as for `products`; `norm` from 2^10 to 2^26.
        Promises: integers of shape (target, rows); every norm at most `norm`, verified on them;
        each column a bitwise function of one row (products are exact, the rest is elementwise).
        """
        return shorten(np.multiply(self.products(rows), self.unit, order="C"), norm)

    def _dense_columns(self) -> Floats:
        columns = np.empty((self.source, self.target))
        draw = _binomials if self.kind == "gaussian" else _signs
        for first, count in self._chunks():
            entries = draw(self._entropy(first), count * self.target)
            columns[first : first + count] = entries.reshape(count, self.target)
        columns.flags.writeable = False
        return columns

    def _sparse_columns(self, odds: int) -> Any:
        indices, signs, counts = [], [], []
        for first, count in self._chunks():
            drawn = words(self._entropy(first), -(-count * self.target // 2))
            uniforms = _bytes(drawn).view("<u4")[: count * self.target]
            found = np.flatnonzero(uniforms < odds) if odds < _ODDS else np.arange(uniforms.size)
            indices.append((found % self.target).astype(np.int32))
            signs.append(np.where(uniforms[found] < odds // 2, 1.0, -1.0))
            counts.append(np.bincount(found // self.target, minlength=count))
        starts = np.concatenate(([0], np.cumsum(np.concatenate(counts))))
        parts = (np.concatenate(signs), np.concatenate(indices), starts)
        return sparse.csr_array(parts, shape=(self.source, self.target))

    def _chunks(self) -> Iterator[tuple[int, int]]:
        """Return the first column and the number of columns of each chunk."""
        step = max(1, _CHUNK // self.target)
        for first in range(0, self.source, step):
            yield first, min(step, self.source - first)

    def _entropy(self, first: int) -> SeededEntropy:
        # A key of its own for each chunk keeps to the first 2^26 bytes of a key: plain AES in
        # counter mode, which no later version of the entropy can change.
        name = f"dplinear projection {self.kind} {self.target} {self.source} {self.seed} {first}"
        return SeededEntropy(hashlib.sha256(name.encode()).digest())


def _is_sparse(rows: object) -> bool:
    return bool(sparse.issparse(rows))


def _bytes(drawn: Words) -> Bytes:
    """Return words as bytes in the order they were drawn, the same on every machine."""
    return drawn.view(np.uint8)


def _signs(entropy: SeededEntropy, count: int) -> Floats:
    """Return ±1, a bit each."""
    bits = np.unpackbits(_bytes(words(entropy, -(-count // 64))), count=count)
    return bits.astype(np.float64) * 2.0 - 1.0


def _binomials(entropy: SeededEntropy, count: int) -> Floats:
    """Return how many bits of a word are 1, less 32: the sums of 2, 4, 8, … 64 bits in place."""
    sums = words(entropy, count)
    for width, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
        low = np.uint64(mask)
        high = sums >> np.uint64(width)
        high &= low
        sums &= low
        sums += high
    sums *= np.uint64(0x0101010101010101)  # whose top byte is the sum of all bytes
    sums >>= np.uint64(56)
    return sums.astype(np.float64) - 32.0
