"""Blocks of examples: rows of integers with a label each, dense or sparse, of a verified norm."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from dplinear.arrays import Floats, Integers
from dplinear.exact.integers import shrink
from dplinear.exact.weights import WHOLE, Indices, parts

CELLS = 1 << 20  # integers to 1: what a label of 1 is

Features = Any  # an array of shape (features, rows), or a SciPy sparse one


@dataclass(frozen=True, eq=False)
class Block:
    """At most 4096 examples: features of shape (features, rows), and a label for each row.

    Integers in float64. Dense features are a view of `rows`, which holds the labels as well.
    `weights`, where rows have such, are whole numbers of 2^−24, from 0 to 1 (`exact/weights.py`).
    """

    features: Features
    labels: Floats
    rows: Floats | None = None
    weights: Integers | None = None

    @classmethod
    def dense(cls, rows: Floats, weights: Integers | None = None) -> "Block":
        """Return a block of rows that hold the features, then the label."""
        return cls(rows[:-1], rows[-1], rows, weights)

    def parts(self) -> Iterator[tuple[int, "Block"]]:
        """Return multipliers, each with the rows that it applies to, as blocks without weights.

        Σ of a row's multipliers is its weight: 1 where rows have none.
        """
        if self.weights is None:
            yield 1, self
            return
        for times, indices in parts(self.weights):
            yield times, self._take(indices)

    def _take(self, indices: Indices) -> "Block":
        if self.rows is not None:
            return Block.dense(self.rows[:, indices])
        return Block(self.features[:, indices], self.labels[indices])


def held_block(block: Block, norm: int) -> Block:
    """Return the block with every example's norm at most `norm`, and labels within ±2^20.

    Requires: integers in float64; `norm` of at most 2^26.
    Promises: verified on the integers; the block itself where it is so already, as it is if it was
    made as it should be. What is longer is scaled towards zero, each example by itself. A weight
    outside of [0, 1] raises: none that `exact/weights.py` makes is.
    """
    _check_weights(block)
    most, label = norm**2, float(CELLS)
    if not isinstance(block.features, np.ndarray):
        features = _held_sparse(block.features, most)
        if features is block.features and (np.abs(block.labels) <= label).all():
            return block
        return replace(block, features=features, labels=np.clip(block.labels, -label, label))
    squares = np.einsum("ij,ij->j", block.features, block.features)
    over = np.flatnonzero(squares > most)
    if not len(over) and (np.abs(block.labels) <= label).all():
        return block
    rows = np.vstack((block.features, np.clip(block.labels, -label, label)))
    rows[:-1, over] = shrink(rows[:-1, over], squares[over], most)
    return Block.dense(rows, block.weights)


def _check_weights(block: Block) -> None:
    weights = block.weights
    if weights is None:
        return
    if weights.shape != block.labels.shape:
        raise ArithmeticError("A block has other than one weight for each row.")
    if len(weights) and not 0 <= int(weights.min()) <= int(weights.max()) <= WHOLE:
        raise ArithmeticError("A weight is not between 0 and 1.")


def _held_sparse(features: Features, most: int) -> Features:
    """Return sparse features likewise; a cell that is stored in parts is what they add up to."""
    held = features
    if held.format != "csc" or not held.has_canonical_format:
        held = sparse.csc_array(held, copy=True)
        held.sum_duplicates()
    rows = np.repeat(np.arange(held.shape[1]), np.diff(held.indptr))
    squares = np.bincount(rows, held.data * held.data, held.shape[1])
    if not (squares > most).any():
        return features
    factors = np.where(squares > most, np.sqrt(most / np.maximum(squares, 1.0)), 1.0)
    while True:
        data = np.trunc(held.data * factors[rows])
        over = np.bincount(rows, data * data, held.shape[1]) > most
        if not over.any():
            return sparse.csc_array((data, held.indices, held.indptr), shape=held.shape)
        factors = np.where(over, factors * (1 - 2.0**-20), factors)
