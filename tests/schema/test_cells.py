"""Cells of text."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dplinear.schema.cells import array_of, codes_of, numbers_of
from dplinear.schema.columns import Category, Numeric
from dplinear.schema.unit_keys import keys_of

COLUMN = Numeric("number", Fraction(-9), Fraction(9), Fraction(0))


@pytest.mark.parametrize("start", [0, 1, 3, 5])
def test_a_slice_of_texts_is_read_like_its_copy(start: int) -> None:
    texts = [b"0.5"] * 5 + [b"x" * 20, b"1.5", None, b" 2"]
    found = numbers_of(COLUMN, pa.array(texts, pa.binary()).slice(start))
    np.testing.assert_array_equal(found, numbers_of(COLUMN, pa.array(texts[start:], pa.binary())))
    np.testing.assert_array_equal(found[-4:], [np.nan, 1.5, np.nan, 2.0])


@pytest.mark.parametrize("cut", [slice(None), slice(1, 4), slice(3, 3)])
@pytest.mark.parametrize("cells", [[1.5, 1.5, None, 2.0, 2.0], ["7", "7", None, "x", "2"]])
def test_run_end_encoded_cells_are_read_like_others(cells: list[object], cut: slice) -> None:
    plain = pa.array(cells)[cut]
    coded = pc.run_end_encode(pa.array(cells))[cut]
    column, category = (
        Numeric("number", Fraction(0), Fraction(10), Fraction(5)),
        Category(("7", "x")),
    )
    np.testing.assert_array_equal(numbers_of(column, coded), numbers_of(column, plain))
    np.testing.assert_array_equal(codes_of(category, coded), codes_of(category, plain))
    np.testing.assert_array_equal(array_of(coded), array_of(plain))
    assert keys_of(coded).equals(keys_of(plain))


def test_bytes_of_one_length_are_read_like_text() -> None:
    cells, column = [b"5   ", b"2.5 ", None, b"x   "], COLUMN
    fixed, text = pa.array(cells, pa.binary(4)), pa.array(cells, pa.binary())
    np.testing.assert_array_equal(numbers_of(column, fixed), [5, 2.5, np.nan, np.nan])
    np.testing.assert_array_equal(array_of(fixed), array_of(text))
