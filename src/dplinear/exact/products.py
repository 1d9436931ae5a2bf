"""Exact products of matrices of integers of any size, by slices that float64 multiplies exactly.

A matrix is cut into slices of w bits: Σ_i S_i·2^(w·i), all but the last of them non-negative. A
product of two slices adds up k products below 2^2w, so all its partial sums are integers of at most
2^53 if k·2^2w ≤ 2^53, and float64 holds them exactly: in any order, fused or not.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dplinear.arrays import BigIntegers, Floats, Integers

_SMALL = 8000  # multiplications that Python's integers do as fast
_RUN = 256  # products of slices that are added up before a carry: below 2^62


def product(left: BigIntegers, right: BigIntegers) -> BigIntegers:
    """Return left·right, exactly."""
    if len(left) * right.size <= _SMALL:
        return np.asarray(left.dot(right), np.object_)
    width = _width(len(right))
    a, b = _slices(left, width), _slices(right, width)

    def parts(order: int) -> Iterator[Integers]:
        for i in range(max(0, order - len(b) + 1), min(len(a), order + 1)):
            yield _multiply(a[i], b[order - i])

    return _join_slices(map(parts, range(len(a) + len(b) - 1)), (len(left), right.shape[1]), width)


def square(matrix: BigIntegers) -> BigIntegers:
    """Return matrix·matrixᵀ, exactly: half of the work of `product`."""
    if len(matrix) * matrix.size <= _SMALL:
        return np.asarray(matrix.dot(matrix.T), np.object_)
    width = _width(matrix.shape[1])
    a = _slices(matrix, width)

    def parts(order: int) -> Iterator[Integers]:
        for i in range(max(0, order - len(a) + 1), order // 2 + 1):
            part = _multiply(a[i], a[order - i].T)
            yield part if 2 * i == order else part + part.T

    return _join_slices(map(parts, range(2 * len(a) - 1)), (len(matrix), len(matrix)), width)


def _width(terms: int) -> int:
    """Return the most bits of a slice; two slices must fill whole bytes."""
    return 4 * ((53 - terms.bit_length()) // 8)


def _multiply(left: Floats, right: Floats) -> Integers:
    return (left @ right).astype(np.int64)


def _slices(matrix: BigIntegers, width: int) -> list[Floats]:
    """Return S_0, S_1, …, in float64."""
    bits = max(int(matrix.max()).bit_length(), int(matrix.min()).bit_length()) + 1
    count = -(-bits // width)
    length = -(-count * width // 8) + 4
    data = b"".join([value.to_bytes(length, "little", signed=True) for value in matrix.ravel()])
    mask = np.int32((1 << width) - 1)
    slices = []
    for start in range(0, count * width, width):
        # Four bytes hold a slice of at most 24 bits and the 0 or 4 before it.
        part = np.ndarray(matrix.size, "<i4", data, start // 8, length) >> np.int32(start % 8)
        if start + width < count * width:
            part &= mask
        slices.append(part.reshape(matrix.shape).astype(np.float64))
    return slices


def _join_slices(
    orders: Iterable[Iterable[Integers]], shape: tuple[int, int], width: int
) -> BigIntegers:
    """Return Σ 2^(width·t)·Σ parts, over the parts of each order t."""
    digits, carry = [], np.zeros(shape, np.int64)
    for parts in orders:
        digit, carry = _carry(parts, carry, width)
        digits.append(digit)
    if len(digits) % 2:
        digit, carry = _carry([], carry, width)
        digits.append(digit)
    pairs = [
        low | high << np.int64(width) for low, high in zip(digits[::2], digits[1::2], strict=True)
    ]
    columns = [_bytes(pair)[:, : width // 4] for pair in pairs]
    rows = np.concatenate([*columns, _bytes(carry)], axis=1)
    data, length = rows.tobytes(), rows.shape[1]
    starts = range(0, len(data), length)
    made = (int.from_bytes(data[at : at + length], "little", signed=True) for at in starts)
    return np.fromiter(made, np.object_, len(rows)).reshape(shape)


def _carry(parts: Iterable[Integers], carry: Integers, width: int) -> tuple[Integers, Integers]:
    """Return the lowest `width` bits of a sum, and what is left of it."""
    total, rest, mask = carry.copy(), np.zeros_like(carry), np.int64((1 << width) - 1)
    for count, part in enumerate(parts, 1):
        total += part
        if count % _RUN == 0:
            rest += total >> np.int64(width)
            total &= mask
    return total & mask, rest + (total >> np.int64(width))


def _bytes(values: Integers) -> NDArray[np.uint8]:
    return values.astype("<i8").reshape(-1, 1).view(np.uint8)
