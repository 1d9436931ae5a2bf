"""Cells of text."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dplinear.schema.cells import numbers_of
from dplinear.schema.columns import Numeric

COLUMN = Numeric("number", Fraction(-9), Fraction(9), Fraction(0))


@pytest.mark.parametrize("start", [0, 1, 3, 5])
def test_a_slice_of_texts_is_read_like_its_copy(start: int) -> None:
    texts = [b"0.5"] * 5 + [b"x" * 20, b"1.5", None, b" 2"]
    found = numbers_of(COLUMN, pa.array(texts, pa.binary()).slice(start))
    np.testing.assert_array_equal(found, numbers_of(COLUMN, pa.array(texts[start:], pa.binary())))
    np.testing.assert_array_equal(found[-4:], [np.nan, 1.5, np.nan, 2.0])
