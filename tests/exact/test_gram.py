"""The integer matrix: exact against Python integers, the same bits in any order, clipped rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplinear.arguments import ArgumentTypeError
from dplinear.curator import Accumulator, Grid, Schema, SecondMoments
from dplinear.exact.gram import Moments, merge
from dplinear.exact.grid import round_to_grid
from dplinear.schema.encoding import Encoder
from refusals import refused

Seeded = Callable[[int], Any]
PLAIN = Schema({f"x{j}": (-1, 1) for j in range(6)})
CLIPPED = Schema({f"x{j}": (-1, 1) for j in range(6)}, row_norm=1.3, intercept=False)
TINY = Schema({f"x{j}": (-1, 1) for j in range(6)}, row_norm=0.001)


def exact(schema: Schema, block: npt.NDArray[Any]) -> SecondMoments:
    accumulator = Accumulator(schema)
    accumulator.update_array(block)
    return accumulator.result()


def integer_rows(schema: Schema, block: npt.NDArray[Any]) -> npt.NDArray[np.object_]:
    grid = Grid.of(schema)
    encoder = Encoder(schema, float(grid.steps_per_unit))
    rounded = round_to_grid(grid, encoder.array(block), encoder.missing)
    return np.array([[int(cell) for cell in row] for row in rounded], object).reshape(rounded.shape)


@pytest.mark.parametrize("schema", [PLAIN, CLIPPED, TINY], ids=["plain", "clipped", "tiny"])
@pytest.mark.parametrize("rows", [0, 1, 4095, 4096, 9001])
def test_equals_python_integers(schema: Schema, rows: int, generator: Seeded) -> None:
    block = generator(rows).normal(0, 1, (rows, 6))
    integers = integer_rows(schema, block)
    assert (exact(schema, block).integers == integers @ integers.T).all()


def test_carries_into_the_second_word() -> None:
    schema = Schema({"x": (-1, 1)})
    block = np.broadcast_to(np.ones(1), (5_000_000, 1))
    moments = exact(schema, block)
    cells = Grid.of(schema).steps_per_unit
    assert moments.count == 5_000_000
    assert (moments.integers == 5_000_000 * cells**2).all()
    assert (exact(schema, -block).integers[0, 1]) == -5_000_000 * cells**2
    total = merge(schema, [moments] * 9)
    assert total.integers[0, 0] == 45_000_000 * cells**2
    assert 5_000_000 * cells**2 > 2**63


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 300), max_size=8), st.booleans())
def test_any_order_chunks_and_merge_tree_give_the_same_bits(
    generator: Seeded, seed: int, cuts: list[int], clip: bool
) -> None:
    random = generator(seed)
    schema = CLIPPED if clip else PLAIN
    block = random.normal(0, 0.7, (300, 6))
    whole = exact(schema, block)
    shuffled = block[random.permutation(300)]
    parts = [exact(schema, piece) for piece in np.split(shuffled, sorted(cuts))]
    while len(parts) > 1:
        left = parts.pop(int(random.integers(len(parts))))
        right = parts.pop(int(random.integers(len(parts))))
        parts.append(left + right)
    assert parts[0] == whole
    assert parts[0].to_bytes() == whole.to_bytes()


STRUCTURED = [1.0, -1.0, 0.5, 1 / 3, 2**-10, 1 - 2**-53, 1e-300, 0.1, np.nan, np.inf, 1e308]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(STRUCTURED) | st.floats(-1.5, 1.5), min_size=6, max_size=6),
    st.floats(2**-10, 2.0),
)
def test_integer_norms_never_pass_the_bound(row: list[float], row_norm: float) -> None:
    schema = Schema({f"x{j}": (-1, 1) for j in range(6)}, row_norm=row_norm)
    integers = integer_rows(schema, np.array([row]))[:, 0]
    assert sum(cell * cell for cell in integers) <= Grid.of(schema).sensitivity


def test_integer_norms_of_many_structured_rows(generator: Seeded) -> None:
    block = generator(0).choice(STRUCTURED[:8], (20_000, 6))
    for row_norm in (0.03, 0.5, 1.0, 1.7, 2.0, 2.6):
        schema = Schema({f"x{j}": (-1, 1) for j in range(6)}, row_norm=row_norm)
        integers = integer_rows(schema, block)
        assert max((integers * integers).sum(axis=0)) <= Grid.of(schema).sensitivity


def test_a_clipped_row_keeps_its_direction(generator: Seeded) -> None:
    block = generator(1).uniform(-1, 1, (200, 6))
    integers = integer_rows(CLIPPED, block).astype(float).T
    norms = np.linalg.norm(block, axis=1)
    want = block * np.minimum(1, 1.3 / norms)[:, None]
    assert np.abs(integers / Grid.of(CLIPPED).steps_per_unit - want).max() < 2e-6
    assert norms.max() > 1.3


def test_a_row_is_rounded_and_clipped_alone(generator: Seeded) -> None:
    block = generator(2).normal(0, 1, (50, 6))
    for schema in (CLIPPED, TINY):
        whole = integer_rows(schema, block)
        for index in range(50):
            assert (integer_rows(schema, block[index : index + 1])[:, 0] == whole[:, index]).all()


def test_bytes_round_trip_and_refuse_anything_else() -> None:
    moments = exact(CLIPPED, np.eye(6))
    data = moments.to_bytes()
    assert SecondMoments.from_bytes(data) == moments
    for broken in (b"", data[:-1], data + b"\0", data[:40], b"x" + data[1:], data[:20] + b"}" * 99):
        with pytest.raises(ValueError, match=r"from_bytes must be bytes that"):
            SecondMoments.from_bytes(broken)
    with refused("data", "SecondMoments.from_bytes", kind=ArgumentTypeError):
        SecondMoments.from_bytes("text")  # type: ignore[arg-type]


def test_counts_only_what_is_there() -> None:
    block = np.zeros((17, 6))
    assert exact(PLAIN, block).count == 17
    assert exact(CLIPPED, block).count == 17
    assert exact(TINY, block).count == 17


def test_raw_moments_undo_the_map_exactly() -> None:
    schema = Schema({"x": (0, 8), "y": (-4, 12)})
    # cells on the grid: multiples of 1/cells, so nothing is rounded and everything must be exact
    block = np.array([[0.0, -4.0], [8.0, 12.0], [4.0, 4.0]])
    raw = exact(schema, block).raw()
    design = np.column_stack([np.ones(3), block])
    assert (raw == (design.T @ design).astype(int)).all()


def test_moments_that_differ_in_a_side_sum_are_not_equal() -> None:
    words = np.zeros((7, 7), np.int64)
    plain = SecondMoments(PLAIN, words, words, 3)
    filled = [1] + [0] * (len(plain.filled) - 1)
    sides: list[dict[str, Any]] = [{"left": 1}, {"squares": 1}, {"filled": filled}]
    assert plain == SecondMoments(PLAIN, words, words, 3)
    for side in sides:
        assert plain != SecondMoments(PLAIN, words, words, 3, **side)


def test_frozen_private_and_of_one_schema() -> None:
    moments = exact(PLAIN, np.ones((3, 6)))
    with pytest.raises(ValueError, match="read-only"):
        moments._low[0, 0] = 1
    assert "3" not in repr(moments).replace("Grid(exponent=22", "").split("cells")[0]
    with refused("other", "SecondMoments.__add__", "of the same schema"):
        moments + exact(CLIPPED, np.ones((3, 6)))
    assert moments == exact(PLAIN, np.ones((3, 6)))
    assert hash(moments) == hash(exact(PLAIN, np.ones((3, 6))))
    assert moments != exact(PLAIN, np.zeros((3, 6)))


def test_cells_that_are_none_become_zero() -> None:
    accumulator = Accumulator(PLAIN)
    accumulator.update_cells(np.array([[np.nan, 5e9, -np.inf]] * 7))
    assert (accumulator.result().integers == 2 * Grid.of(PLAIN).steps_per_unit ** 2).all()


def test_the_matrix_of_no_rows_is_what_sums_begin_with() -> None:
    none = SecondMoments.zero(PLAIN)
    assert none.count == 0
    assert none.integers.shape == (7, 7)
    assert not none.integers.any()
    assert merge(PLAIN, []) == none


def test_moments_of_cells_are_rounded_once() -> None:
    schema = Schema({"x": (0, 3), "y": (-1, 1)}, row_norm=1.5)
    moments = exact(schema, np.array([[1.0, 0.3], [2.5, -0.7], [0.2, 0.0]]))
    cells = Grid.of(schema).steps_per_unit
    for (i, j), entry in np.ndenumerate(moments.cells()):
        assert entry == int(moments.integers[i, j]) / cells**2
    assert moments.cells()[0, 0] > 1
    assert moments.grid == Grid.of(schema)


def test_raw_moments_without_an_intercept_are_only_scaled() -> None:
    schema = Schema({"x": (-8, 8), "y": (-4, 4)}, intercept=False)
    block = np.array([[8.0, -4.0], [4.0, 2.0], [-8.0, 0.0]])
    assert (exact(schema, block).raw() == (block.T @ block).astype(int)).all()


def test_what_is_no_matrix_neither_adds_nor_equals() -> None:
    moments = exact(PLAIN, np.ones((3, 6)))
    assert (moments == 1) is False
    with pytest.raises(TypeError, match="unsupported operand"):
        moments + 1


def test_a_pass_adds_reads_and_merges() -> None:
    passed = Moments(PLAIN)
    block = np.linspace(-1, 1, 60).reshape(10, 6)
    parts = []
    for piece in (block[:3], block[3:]):
        accumulator = passed.accumulator()
        accumulator.update_array(piece)
        parts.append(accumulator.result())
    assert passed.merge(iter(parts)) == exact(PLAIN, block)
    sent = parts[0].to_bytes()
    assert passed.read(sent) == parts[0]
    assert sent.startswith(b"dplinear-gram-4\n" + (3).to_bytes(8, "little"))
