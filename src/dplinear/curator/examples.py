"""From raw rows and labels to bounded examples: clipped, rounded to integers, and projected.

Rows are NumPy arrays or SciPy sparse matrices of any number of features; sparse rows are never made
dense. What becomes of a row depends on public rules and on that row alone, bit by bit. No value
raises or warns.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite, isqrt
from typing import Any

import numpy as np
from scipy import sparse

from dplinear.arguments import integer, positive, real, rejection, wrong_type
from dplinear.arrays import Array, Floats, Integers, kind_of
from dplinear.convex.compression.projections import Projection
from dplinear.convex.example_blocks import CELLS, Block
from dplinear.convex.examples import Examples, Frame
from dplinear.curator.sources.pool import PATIENCE, bar
from dplinear.exact.integers import clamp, ordered_squares, shorten
from dplinear.exact.row_sums import BLOCK_ROWS
from dplinear.exact.sparse_integers import sparse_integers
from dplinear.schema.cells import codes_of, numbers_of
from dplinear.schema.columns import Category, Numeric, check_levels
from dplinear.schema.sparse_rows import SparseRows

_READABLE = "biufOSU"
_CELLS_AT_ONCE = 1 << 22  # of dense rows: 32 MiB
_NUMBER = Numeric("number", Fraction(0), Fraction(1), Fraction(0))

Label = str | float


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules:
    """The public rules by which a row and its label become an example.

    Requires:
    - `features`, the number of columns of X; `row_norm`, above 0: longer rows are scaled down to
      this Euclidean norm;
    - either `target_bounds`, low and high: labels are numbers, clamped between them; or `classes`,
      two labels, of which the second is +1, and every other label, known or not, is −1;
    - `projection`, if any, from R^`dimension`, and `clip`: projected rows that are longer than
      `clip` are scaled down to it, in units of `row_norm`;
    - `compressed`: rows of X are projected already, and are clipped to clip·row_norm;
    - `intercept`, 0 or from 1e-3 to 1e3: the value of one more feature, the last, the same for
      every row, where rows of norm `row_norm` count as 1.

    Promises: an example is (x·`scale`, `constant`), in R^`dimension` and of norm at most 1, or its
    projection, of norm at most `clip`; so ⟨θ, example⟩ = ⟨scale·θ, x⟩ + constant·θ_last. A constant
    of value c takes its share of the norm from every row: `scale` is 1/(row_norm·√(1 + c²)),
    `constant` c/√(1 + c²), both rounded to the grid, so that they are the same for rows that are
    clipped. Bounds become ±1, their middle 0. `frame` is what learners see.
    """

    features: int
    row_norm: float
    target_bounds: tuple[float, float] | None = None
    classes: tuple[Label, Label] | None = None
    projection: Projection | None = None
    clip: float = 1.5
    compressed: bool = False
    intercept: float = 0.0
    dimension: int = field(init=False)
    frame: Frame = field(init=False)
    scale: float = field(init=False)
    constant: float = field(init=False)
    _norm: int = field(init=False, repr=False)  # of the integers that x becomes
    _factor: float = field(init=False, repr=False)  # from x to them
    _last: int = field(init=False, repr=False)  # the constant's integer, 0 where there is none
    _labels: Category | tuple[float, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        where, image = "Rules", self.projection
        features = integer(self.features, "features", where, low=1, high=(1 << 31) - 2)
        row_norm = positive(self.row_norm, "row_norm", where)
        clip = real(self.clip, "clip", where, low=2.0**-10, high=8.0)
        self._set(row_norm=row_norm, clip=clip)
        self._set(_labels=_read_labels(self.target_bounds, self.classes, where))
        last, norm = _shares(self.intercept, where)
        dimension = features + (last > 0)
        if self.compressed and (image is None or last or features != image.target):
            rule = "False unless there are a projection to as many dimensions, and no intercept"
            raise rejection("compressed", where, rule, self.compressed)
        if self.compressed and image is not None:
            dimension = image.source
        if image is not None and image.source != dimension:
            rule = f"from {dimension} dimensions: the features, and the intercept if there is one"
            raise rejection("projection", where, rule, f"from {image.source}")
        frame = Frame(dimension, 1.0) if image is None else Frame(image.target, clip)
        factor = (CELLS if self.compressed else norm) / row_norm
        if not (isfinite(factor) and factor >= sys.float_info.min):
            raise rejection("row_norm", where, "from 1e-300 to 1e300", row_norm)
        self._set(dimension=dimension, frame=frame, scale=factor / CELLS, constant=last / CELLS)
        self._set(_norm=frame.norm if self.compressed else norm, _factor=factor, _last=last)

    def _set(self, **facts: object) -> None:
        for name, fact in facts.items():
            object.__setattr__(self, name, fact)

    def labels(self, cells: Array) -> Floats:
        """Return the labels of examples: integers within ±2^20, each of its own cell."""
        if isinstance(self._labels, Category):
            return np.where(codes_of(self._labels, cells) == 1, float(CELLS), -float(CELLS))
        low, high = self._labels
        middle, half = float((Fraction(low) + Fraction(high)) / 2), _half(low, high)
        with np.errstate(all="ignore"):
            scaled = (np.clip(numbers_of(_NUMBER, cells), low, high) - middle) / half
            return np.rint(np.clip(clamp(scaled), -1.0, 1.0) * CELLS)

    def dense(self, cells: Array) -> Floats:
        """Return rows of an array as integers of shape (dimension, rows), before any projection.

        Promises: every norm at most what `frame` says, verified on the integers.
        """
        with np.errstate(all="ignore"):
            values = numbers_of(_NUMBER, cells.ravel()).reshape(cells.shape)
            steps = np.multiply(values.T, self._factor, order="C")
            rows = shorten(clamp(steps), self._norm, ordered_squares)
        return (
            np.vstack((rows, np.full((1, len(cells)), float(self._last)))) if self._last else rows
        )

    def sparse(self, rows: SparseRows, first: int, last: int) -> Any:
        """Return sparse rows likewise, as a SciPy sparse array."""
        with np.errstate(all="ignore"):
            return sparse_integers(rows, first, last, self._factor, self._norm, self._last)


def check_table(data: Any, target: Any, rules: Rules, where: str) -> None:
    """Raise unless the rules can read rows and labels, by their kind, dtype and shape alone.

    Promises: reads no cell, and says no number of rows.
    """
    _check_kind(data, "data", where)
    if data.ndim != 2 or data.shape[1] != rules.features:
        rule = f"of two dimensions, with {rules.features} columns"
        raise rejection("data", where, rule, f"{data.ndim} dimension(s) {data.shape[1:]}")
    if _is_sparse(target):
        raise wrong_type("target", where, "a NumPy array", type(target))
    _check_kind(target, "target", where)
    if target.ndim != 1:
        raise rejection("target", where, "of one dimension", f"{target.ndim} dimension(s)")
    if len(target) != data.shape[0]:
        raise rejection("target", where, "as long as the rows", "another number of rows")


def read_examples(
    data: Any,
    target: Any,
    rules: Rules,
    *,
    weights: Integers | None = None,
    progress: bool | None = None,
    where: str = "read_examples",
) -> Examples:
    """Return the examples of a table. They are private.

    Requires: `data`, an array or a SciPy sparse matrix with a row for each label of `target`;
    `weights`, one for each row, where rows have such (`row_weights.py`).
    Promises: errors as `check_table` makes them, before a cell is read, and no others. Sparse rows
    stay sparse unless they are projected, and give the same integers as dense ones; entries that
    share a place are added up. A cell without a number counts as 0, an infinite one as the end of
    its line, a label without a number as the middle of its bounds. A bar shows progress on
    terminals after a second, or where `progress` says so.
    """
    check_table(data, target, rules, where)
    labels = target if isinstance(target, np.ma.MaskedArray) else np.asarray(target)
    read = _sparse_reader(data, rules) if _is_sparse(data) else _dense_reader(data, rules)
    step = BLOCK_ROWS
    if not _is_sparse(data):
        step = max(1, min(step, _CELLS_AT_ONCE // rules.features))

    def block(first: int, last: int) -> Block:
        own = None if weights is None else weights[first:last]
        return _block(read(first, last), rules.labels(labels[first:last]), own, rules)

    blocks = list(_each(block, data.shape[0], step, progress=progress))
    return Examples(rules.frame, blocks, weighted=weights is not None)


def _block(features: Any, labels: Floats, weights: Integers | None, rules: Rules) -> Block:
    if rules.projection is not None and not rules.compressed:
        features = rules.projection.project(features, rules.frame.norm)
    if _is_sparse(features):
        return Block(features, labels, weights=weights)
    return Block.dense(np.vstack((features, labels)), weights)


def _dense_reader(X: Array, rules: Rules) -> Callable[[int, int], Floats]:
    plain = X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    return lambda first, last: rules.dense(plain[first:last])


def _sparse_reader(X: Any, rules: Rules) -> Callable[[int, int], Any]:
    rows = SparseRows.of(X)
    if rules.compressed:  # few columns, and none of them likely to be 0
        return lambda first, last: rules.dense(rows.array(first, last))
    return lambda first, last: rules.sparse(rows, first, last)


def _each(
    block: Callable[[int, int], Block], count: int, step: int, *, progress: bool | None
) -> Iterator[Block]:
    shown = sys.stderr.isatty() if progress is None else progress
    began = time.monotonic()
    with ExitStack() as stack:
        # At once, where it is asked for: a table without rows shows it, too.
        advance: Callable[[int], None] | None = (
            stack.enter_context(bar(count)) if progress else None
        )
        for first in range(0, count, step):
            if shown and advance is None and time.monotonic() - began > PATIENCE:
                advance = stack.enter_context(bar(count))
            last = min(first + step, count)
            yield block(first, last)
            if advance is not None:
                advance(last)


def read_intercept(intercept: float, where: str) -> float:
    """Return the value of the constant feature, or 0 for none."""
    value = real(intercept, "intercept", where, low=0.0, high=1e3)
    if 0 < value < 1e-3:
        raise rejection("intercept", where, "0, or from 1e-3 to 1e3", intercept)
    return value


def _shares(intercept: float, where: str) -> tuple[int, int]:
    """Return the constant's integer k, and the norm N that it leaves: k² + N² ≤ 4^20."""
    value = Fraction(read_intercept(intercept, where))
    constant = isqrt(int(CELLS**2 * value**2 / (1 + value**2)))
    return constant, isqrt(CELLS**2 - constant**2)


def _read_labels(bounds: Any, classes: Any, where: str) -> Category | tuple[float, float]:
    """Return the classes as levels, or the bounds as numbers."""
    if (bounds is None) == (classes is None):
        rule = "given where classes are not, and only there"
        raise rejection("target_bounds", where, rule, bounds)
    pair, name = (bounds, "target_bounds") if classes is None else (classes, "classes")
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise wrong_type(name, where, "a pair", pair)
    if classes is not None:
        levels = [_label(label, where) for label in pair]
        if len({type(level) for level in levels}) > 1 or levels[0] == levels[1]:
            raise rejection(name, where, "two different numbers, or two texts", pair)
        check_levels(levels, name, where)
        return Category(tuple(x if isinstance(x, str) else Fraction(x) for x in levels))
    low, high = (real(end, name, where) for end in pair)
    if not low < high or _half(low, high) < sys.float_info.min:
        raise rejection(name, where, "a pair of numbers, the first below the second", pair)
    return low, high


def _label(label: Any, where: str) -> Label:
    if isinstance(label, str):
        return label
    return real(int(label) if isinstance(label, bool | np.bool_) else label, "classes", where)


def _half(low: float, high: float) -> float:
    return float((Fraction(high) - Fraction(low)) / 2)


def _is_sparse(values: object) -> bool:
    return bool(sparse.issparse(values))


def _check_kind(values: Any, parameter: str, where: str) -> None:
    rule = "a NumPy array of real numbers, text or objects"
    if _is_sparse(values):
        if values.dtype.kind not in "biuf":
            raise rejection(parameter, where, "of real numbers", kind_of(values.dtype))
    elif not isinstance(values, np.ndarray):
        raise wrong_type(parameter, where, f"{rule}, or a SciPy sparse one", type(values))
    elif values.dtype.kind not in _READABLE:
        raise rejection(parameter, where, rule, kind_of(values.dtype))
