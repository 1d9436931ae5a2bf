"""Scores of atoms: ⟨atom, G⟩ for an exact integer vector G, in integers, at the speed of BLAS.

Atoms are rounded to a few bits, which is public; G is cut into limbs so short that their products
with the atoms are exact in float64. What is left of the sum is rounded down once, which is paid for
in the sensitivity.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, isqrt

import numpy as np

from dplinear.arrays import BigIntegers, Floats, Integers
from dplinear.convex.sets.contract import Atoms
from dplinear.exact.integers import EXACT

_ATOM_BITS = 16  # of the longest atom
_PLAIN_BITS = 24  # of what one example adds to a score, where atoms are unit vectors
_LISTED = 4096  # columns, up to which all distances are taken
_BLOCK = 512
_MARGIN = 1 + 2.0**-20  # outweighs the rounding of float64 sums of squares

_LARGEST = 1 << 62  # of a score in a word

Scores = Integers | BigIntegers


@dataclass(frozen=True, eq=False)
class AtomScores:
    """⌊⟨aₖ, G⟩/2^shift⌋ for all atoms, the aₖ rounded to integers.

    Requires: G a sum of one integer vector of norm at most `bound` for each example, however many;
    or for all examples of one unit of privacy, of integer weights that are counted in `bound`.
    Promises: `range` is the most that one of them more or less changes a score relative to any
    other, opposites included: with d = G' − G the scores before rounding change by ⟨aₖ, d⟩, two of
    them by at most ‖aₖ − aⱼ‖·‖d‖ relative to each other, and rounding each down moves that by less
    than 2. Atoms that have no opposites are first centred, which moves all scores alike. For unit
    vectors the scores are G's entries, so `largest`, the most that one example adds to any of them,
    bounds the change as well, by twice that.
    """

    atoms: Atoms
    bound: int
    largest: int | None = None
    range: int = field(init=False)
    replaced_range: int = field(init=False)
    _integers: Floats | None = field(init=False, repr=False)
    _limb: int = field(init=False, repr=False)
    _shift: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        atoms, integers, limb = self.atoms, None, 0
        if atoms.matrix is None:
            most = min(self.bound, self.largest or self.bound)
            shift = max(most.bit_length() - _PLAIN_BITS, 0)
            squared = 4 if atoms.signed else 2  # of the largest distance of two atoms
        else:
            integers, longest = _round_atoms(atoms.matrix, centred=not atoms.signed)
            squared = 4 * longest**2 if atoms.signed else _diameter(integers, longest)
            limb = EXACT - _ATOM_BITS - ((len(integers) - 1).bit_length() + 1) // 2
            shift = limb
        self._set(_integers=integers, _limb=limb, _shift=shift)
        for name, times in (("range", 1), ("replaced_range", 2)):
            distance = isqrt(squared * (times * self.bound) ** 2) + 1
            if integers is None and self.largest is not None:
                distance = min(distance, 2 * times * self.largest)
            self._set(**{name: ceil(Fraction(distance, 2**shift)) + 1})

    def _set(self, **facts: object) -> None:
        for name, fact in facts.items():
            object.__setattr__(self, name, fact)

    def of(self, total: BigIntegers) -> Scores:
        """Return the scores of the first `count` atoms; those of their opposites are minus that.

        Exact for any G: in words of 64 bits, or in Python's integers where these are too short.
        """
        if self._integers is None:
            plain = [int(whole) >> self._shift for whole in total]
            fits = all(-_LARGEST <= score <= _LARGEST for score in plain)
            return np.array(plain, np.int64 if fits else object)
        limbs = _limbs([int(whole) for whole in total], self._limb)
        products: Scores = (self._integers.T @ limbs).astype(np.int64)
        # Each product is at most 2^53, so that all but the last add less than 2^54 of its unit.
        most = int(np.abs(products[:, -1]).max(initial=0)) + (1 << EXACT + 1 >> self._limb)
        if most << max(limbs.shape[1] - 2, 0) * self._limb > _LARGEST:
            products = products.astype(object)
        scores = products[:, 0] >> self._shift
        for index in range(1, limbs.shape[1]):
            scores = scores + (products[:, index] << (index - 1) * self._limb)
        return np.asarray(scores)


def _round_atoms(matrix: Floats, *, centred: bool) -> tuple[Floats, int]:
    """Return atoms as integer columns of norm at most 2^16, and a bound on the longest."""
    columns = matrix - matrix.mean(axis=1, keepdims=True) if centred else matrix
    peak = np.abs(columns).max()
    if not peak:
        return np.zeros(columns.shape), 0
    columns = columns / peak  # so that no square is too small or too large for float64
    largest = np.sqrt(np.einsum("ij,ij->j", columns, columns).max())
    # Rounding adds half of √m at the most.
    integers = np.rint(columns * ((2**_ATOM_BITS - isqrt(len(columns)) - 1) / largest))
    squares = np.einsum("ij,ij->j", integers, integers)
    return integers, isqrt(int(squares.max() * _MARGIN)) + 1


def _diameter(integers: Floats, longest: int) -> int:
    """Return the largest squared distance of two columns, or a bound on it if they are many."""
    count = integers.shape[1]
    if count > _LISTED:
        return 4 * longest**2
    # Integers throughout, of at most 2^34: exact.
    squares, largest = np.einsum("ij,ij->j", integers, integers), 0.0
    for at in range(0, count, _BLOCK):
        products = integers[:, at : at + _BLOCK].T @ integers
        distances = squares[at : at + _BLOCK, None] + squares - 2 * products
        largest = max(largest, float(distances.max()))
    return int(largest)


def _limbs(whole: list[int], bits: int) -> Floats:
    """Return integers as columns of digits to the base 2^bits, the last one signed."""
    columns, mask = [], (1 << bits) - 1
    while any(not -mask <= entry <= mask for entry in whole):
        columns.append([entry & mask for entry in whole])
        whole = [entry >> bits for entry in whole]
    return np.array([*columns, whole], np.float64).T
