"""Random matrices P that rows are multiplied by: integers A, drawn for each release, times `unit`.

| kind | an entry of A | P |
|---|---|---|
| gaussian | discrete Gaussian of standard deviation 2^20 | entries of variance 1/k |
| rademacher | ±1 | entries ±1/√k |
| orthonormal | the nearest to √k·2^20 times P's | orthonormal columns times √(d/k), k ≤ d |

The mean of PPᵀ is the identity, but for rounding of less than a millionth: so E‖xP‖² = ‖x‖² for
every x. Where k = d an orthonormal P is a rotation, and ‖xP‖ = ‖x‖.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dplinear.arguments import choice, integer, rejection
from dplinear.arrays import Floats
from dplinear.ledger.fingerprint import SECRET
from dplinear.noise import discrete
from dplinear.noise.entropy import Entropy, system, words
from dplinear.privacy.profiles.gaussian import GRID_CONSTANT

KINDS = ("gaussian", "rademacher", "orthonormal")
MOST_COLUMNS = 1 << 12
DIGITS = 20  # binary ones, behind the point
_EXACT = 53

_WHERE = "RowMap"


@dataclass(frozen=True, eq=False)
class RowMap:
    """P = A/√(k·4^`digits`): `integers` A, of shape (features, k), float64. Secret unless released.

    Promises: an integer product of rows and A is exact in float64, in any order, for rows of
    integer norm at most 2^26.

    `name` tells maps apart in public. It is random, and no function of the integers: of those even
    a digest would tell who guesses them, since small maps are few.
    """

    kind: str
    digits: int
    integers: Floats = field(repr=False, metadata=SECRET)
    name: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"{system().bits(128):032x}")
        integers = np.array(self.integers, np.float64)
        # By Cauchy–Schwarz every partial sum of a row's product is at most 2^26 times this norm.
        norms = np.einsum("ij,ij->j", integers, integers)
        whole = (np.rint(integers) == integers).all()
        if not whole or norms.max(initial=0.0) * (1 + 1e-9) > 4.0 ** (_EXACT - 26):
            rule = "integers whose products with rows are exact"
            raise rejection("integers", _WHERE, rule, f"shape {integers.shape}")
        integers.flags.writeable = False
        object.__setattr__(self, "integers", integers)

    @property
    def k(self) -> int:
        """How many numbers a row is mapped to."""
        return int(self.integers.shape[1])

    @property
    def dimension(self) -> int:
        """How many features a row has."""
        return int(self.integers.shape[0])

    @property
    def unit(self) -> float:
        """What A is multiplied by."""
        return 1.0 / (math.sqrt(self.k) * 2.0**self.digits)

    def matrix(self) -> Floats:
        """Return P."""
        return self.integers * self.unit

    def facts(self) -> dict[str, Any]:
        """Return the matrix as plain JSON, exactly: P = integers/√(k·4^digits). Not its name."""
        entries = [[int(entry) for entry in row] for row in self.integers]
        return {"kind": self.kind, "digits": self.digits, "integers": entries}

    @classmethod
    def of(cls, facts: dict[str, Any], name: str = "") -> "RowMap":
        """Return the map that `facts` were written of; under a new name, unless one is given."""
        integers = np.array(facts["integers"], np.float64)
        return cls(str(facts["kind"]), int(facts["digits"]), integers, name)


def draw(kind: str, dimension: int, k: int, bits: Entropy) -> RowMap:
    """Return a fresh map of rows of `dimension` features to k numbers."""
    choice(kind, "projection", _WHERE, KINDS)
    most = min(dimension, MOST_COLUMNS) if kind == "orthonormal" else MOST_COLUMNS
    k = integer(k, "k", _WHERE, low=1, high=most)
    if kind == "rademacher":
        drawn = words(bits, -(-dimension * k // 64))
        flips = np.unpackbits(drawn.view(np.uint8), count=dimension * k)
        return RowMap(kind, 0, flips.reshape(dimension, k).astype(np.float64) * 2.0 - 1.0)
    normal = discrete.gaussian(4**DIGITS, (dimension, k), entropy=bits).astype(np.float64)
    if kind == "gaussian":
        return RowMap(kind, DIGITS, normal)
    return RowMap(kind, DIGITS, np.rint(_orthonormal(normal) * 2.0**DIGITS))


def grid_cost(dimension: int, k: int) -> float:
    """Return how far a Gaussian map's integers are from rounded normal ones, in total variation."""
    return dimension * k * GRID_CONSTANT / 4.0**DIGITS * (1 + 1e-9)


def _orthonormal(normal: Floats) -> Floats:
    """Return √k·P from normal entries: of uniform law, as their law is the same in any rotation."""
    q, r = np.linalg.qr(normal / 2.0**DIGITS)
    # Signs that make the triangle's diagonal positive make the factorisation unique.
    return np.asarray(q * np.sign(np.diag(r)) * math.sqrt(len(normal)))
