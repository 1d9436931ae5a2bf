import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dplinear.noise import simulation, wishart

from .laws import FALSE_ALARM

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

Matrix = NDArray[np.float64]

SCALE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])


def drawn_wishart(scale: Matrix, degrees: float) -> Matrix:
    return wishart.wishart_from_factor(wishart.square_root(scale), degrees)


def assert_mean(draws: Matrix, mean: Matrix | float, variance: Matrix | float) -> None:
    """Compare with a mean by the normal limit, each entry at its share of the false-alarm rate."""
    average = draws.mean(axis=0)
    share = FALSE_ALARM / max(1, average.size)
    limit = stats.norm.isf(share / 2) * np.sqrt(np.asarray(variance) / len(draws))
    # The limit is reached slowly by heavy-tailed entries: 1.3 times the bound leaves room for that.
    assert (np.abs(average - mean) <= 1.3 * limit).all()


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_normal_numbers_follow_the_normal_law(size: int) -> None:
    drawn = wishart.standard_normal(size)
    assert stats.kstest(drawn, stats.norm.cdf).pvalue > FALSE_ALARM


def test_normal_tails_and_pairs() -> None:
    drawn = wishart.standard_normal((1000, 1000))
    for cut in (3.0, 4.0):
        beyond = int((np.abs(drawn) > cut).sum())
        expected = 2 * stats.norm.sf(cut)
        assert stats.binomtest(beyond, drawn.size, expected).pvalue > FALSE_ALARM
    flat = drawn.ravel()
    one, other = flat[: len(flat) // 2], flat[len(flat) // 2 :]  # the two halves of each pair
    assert stats.pearsonr(one, other).pvalue > FALSE_ALARM
    assert stats.pearsonr(one**2, other**2).pvalue > FALSE_ALARM
    assert stats.pearsonr(flat[:-1], flat[1:]).pvalue > FALSE_ALARM


def test_uniform_numbers_keep_their_bits_near_zero() -> None:
    class Low:
        simulated = True

        def fill(self, words: NDArray[np.uint64]) -> None:
            words[:] = np.arange(len(words), dtype=np.uint64)  # the high words are 0, 1

        def bits(self, count: int) -> int:
            return count

    drawn = wishart._uniform(2, Low())
    assert 0 < drawn[0] < 2.0**-125
    assert drawn[1] == pytest.approx(2.0**-64)


@pytest.mark.parametrize("degrees", [0.3, 1, 1.7, 2, 3, 10, 123.4, 1e4, 1e7])
def test_chi_square_numbers_follow_their_law(degrees: float) -> None:
    drawn = wishart.chi_square(degrees, 10**5)
    assert stats.kstest(drawn, stats.chi2(degrees).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("degrees", [2.2, 3, 7, 40.5])
def test_wishart_entries_have_the_right_mean_and_variance(degrees: float) -> None:
    draws = np.array([drawn_wishart(SCALE, degrees) for _ in range(4000)])
    diagonal = np.diag(SCALE)
    variance = degrees * (SCALE**2 + np.outer(diagonal, diagonal))
    assert_mean(draws, degrees * SCALE, variance)
    squares = (draws - degrees * SCALE) ** 2
    assert_mean(squares, variance, squares.var(axis=0))


def test_bartlett_agrees_with_sums_of_outer_products() -> None:
    degrees, draws = 6, 4000
    factor = np.linalg.cholesky(SCALE)
    rows = wishart.standard_normal((draws, degrees, 3)) @ factor.T
    sums = np.swapaxes(rows, 1, 2) @ rows
    ours = np.array([drawn_wishart(SCALE, degrees) for _ in range(draws)])
    for feature in (np.linalg.det, lambda m: np.trace(m, axis1=1, axis2=2), lambda m: m[:, 0, 2]):
        assert stats.ks_2samp(feature(ours), feature(sums)).pvalue > FALSE_ALARM
    smallest = np.linalg.eigvalsh(ours)[:, 0], np.linalg.eigvalsh(sums)[:, 0]
    assert stats.ks_2samp(smallest[0], smallest[1]).pvalue > FALSE_ALARM


def test_large_degrees_of_freedom() -> None:
    draws = np.array([drawn_wishart(SCALE, 1e7) for _ in range(1000)])
    diagonal = np.diag(SCALE)
    assert_mean(draws, 1e7 * SCALE, 1e7 * (SCALE**2 + np.outer(diagonal, diagonal)))


def test_inverse_wishart_is_the_inverse_of_a_wishart() -> None:
    degrees, draws = 9.5, 4000
    inverse = np.linalg.inv(SCALE)
    ours = np.linalg.inv([wishart.inverse_wishart(SCALE, degrees) for _ in range(draws)])
    theirs = np.array([drawn_wishart((inverse + inverse.T) / 2, degrees) for _ in range(draws)])
    for i, j in itertools.combinations_with_replacement(range(3), 2):
        assert stats.ks_2samp(ours[:, i, j], theirs[:, i, j]).pvalue > FALSE_ALARM
    assert stats.ks_2samp(np.linalg.det(ours), np.linalg.det(theirs)).pvalue > FALSE_ALARM


def test_inverse_wishart_mean() -> None:
    draws = np.array([wishart.inverse_wishart(SCALE, 30) for _ in range(4000)])
    assert_mean(draws, SCALE / 26, draws.var(axis=0))


@pytest.mark.parametrize("degrees", [5, 25])
def test_results_are_exactly_symmetric_and_definite(degrees: int) -> None:
    basis = simulation.generator(1).standard_normal((40, 5))
    scale = basis.T @ basis
    for drawn in (drawn_wishart(scale, degrees), wishart.inverse_wishart(scale, degrees)):
        assert np.array_equal(drawn, drawn.T)
        assert np.linalg.eigvalsh(drawn)[0] > 0


def test_singular_scales_give_matrices_in_their_range() -> None:
    rows = np.array([[3.0, 1.0, 2.0, 0.0], [1.0, -1.0, 0.5, 0.0]])
    drawn = drawn_wishart(rows.T @ rows, 5.5)
    assert drawn.shape == (4, 4)
    assert np.linalg.matrix_rank(drawn, tol=1e-3) == 2
    assert not drawn_wishart(np.zeros((3, 3)), 4).any()


def test_rounding_below_zero_is_not_an_error() -> None:
    row = simulation.generator(2).standard_normal((1, 30))
    gram = row.T @ row
    assert np.linalg.eigvalsh(gram)[0] < 0
    factor = wishart.square_root(gram)
    assert np.allclose(factor @ factor.T, gram)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32))
def test_square_roots_of_gram_matrices(columns: int, rows: int, seed: int) -> None:
    table = simulation.generator(seed).standard_normal((rows, columns))
    gram = table.T @ table
    factor = wishart.square_root(gram)
    assert np.allclose(factor @ factor.T, gram, atol=1e-6 * np.abs(gram).max())


SECRET = 7.654321


@pytest.mark.parametrize(
    ("matrix", "rule"),
    [
        ([[1.0, SECRET], [SECRET, 1.0]], "positive semidefinite"),
        ([[-SECRET]], "positive semidefinite"),
        ([[1.0, SECRET], [0.0, 100.0]], "symmetric"),
        ([[SECRET, 0.0]], "a square matrix of finite numbers"),
        ([[float("nan"), 0.0], [0.0, SECRET]], "a square matrix of finite numbers"),
        ([SECRET], "a square matrix of finite numbers"),
        (SECRET, "a square matrix of finite numbers"),
        (np.empty((0, 0)), "a square matrix of finite numbers"),
        ([["7.654321x"]], "a square matrix of finite numbers"),
        (None, "a square matrix of finite numbers"),
    ],
)
def test_bad_matrices_are_refused_without_quoting_them(matrix: Matrix, rule: str) -> None:
    for call in (drawn_wishart, wishart.inverse_wishart):
        with pytest.raises((TypeError, ValueError)) as caught:
            call(matrix, 3)
        text = str(caught.value)
        assert "must be" in text
        assert "7.65" not in text
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    with pytest.raises((TypeError, ValueError), match=rule):
        wishart.square_root(matrix)


def test_inverse_wishart_needs_a_definite_matrix() -> None:
    with pytest.raises(
        ValueError, match=r"'psi' parameter of wishart\.inverse_wishart must be pos"
    ):
        wishart.inverse_wishart(np.ones((2, 2)), 5)


@pytest.mark.parametrize("degrees", [2, 1.5, 0, -3, float("nan"), float("inf"), "5", None, True])
def test_degrees_must_exceed_the_dimension_less_one(degrees: float) -> None:
    for call in (drawn_wishart, wishart.inverse_wishart):
        with pytest.raises((TypeError, ValueError), match="'degrees' parameter of wishart"):
            call(np.eye(3), degrees)


@given(
    st.one_of(st.floats(max_value=0), st.just(float("nan")), st.text(), st.none(), st.booleans())
)
def test_chi_square_refuses_other_degrees(degrees: float) -> None:
    with pytest.raises(
        (TypeError, ValueError), match=r"'degrees' parameter of wishart\.chi_square"
    ):
        wishart.chi_square(degrees, 3)
