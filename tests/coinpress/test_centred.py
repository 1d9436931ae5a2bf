"""Second moments around a released centre: what is asked, how far a row moves it, its limit."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA

import dplinear as dpl
from descent.descents import spelled
from dplinear.adaptive.noisy_sums import NoisySums
from dplinear.coinpress import centred
from dplinear.coinpress.centred import METRICS, CentredCovariance
from dplinear.curator.passes import exact_sums
from dplinear.estimators import PrivatePCA
from dplinear.exact.mapped_sums import MappedGram, MappedNorms, MappedSum
from dplinear.exact.score_sums import LengthHistogram
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, Neighbours

from .coins import ADD_REMOVE, REPLACE, SILENT, Transcript, apart, recorded

BOUND = 1e3
SPREAD = np.array([1, 20, 0.5])
MIDDLE = np.array([400, -300, 100])


def table(seed: int, generator: Any, rows: int = 60) -> Any:
    return generator(seed).normal(size=(rows, 3)) * SPREAD + MIDDLE


def neighbours(rows: Any, relation: Neighbours) -> list[tuple[Any, Any]]:
    """A row at the corners, far beyond them, without numbers, and where all others are."""
    signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    odd = [np.full(3, value) for value in (1e300, -np.inf, np.nan)]
    others = [*(signs * BOUND), *odd, *(rows.mean(axis=0) + sign * SPREAD * 40 for sign in signs)]
    if relation is ADD_REMOVE:
        return [(rows, np.vstack((rows, row))) for row in others] + [(rows, rows[1:])]
    swapped = [np.vstack((rows[:-1], row)) for row in others]
    return [(one, other) for one in (rows, *swapped[::2]) for other in swapped]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_no_row_moves_it_by_more_than_is_paid_for(
    relation: Neighbours, metric: str, generator: Callable[[int], Any]
) -> None:
    """What was asked of one table, asked of its neighbours: each sum, and all of them together."""
    rows = table(1, generator)
    method = CentredCovariance(guarantee=ZCDP(5.0), neighbours=relation, metric=metric)
    farthest, spent = apart(recorded(method, rows, BOUND, 2), neighbours(rows, relation))
    assert Fraction(9, 10) < farthest <= 1
    assert Fraction(1, 2) < spent <= 1


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_queries_depend_on_earlier_answers_alone(
    relation: Neighbours, generator: Callable[[int], Any]
) -> None:
    """Another table that gave the same answers is asked the same, and the same is released."""
    method = CentredCovariance(guarantee=ZCDP(0.5), neighbours=relation)
    told = recorded(method, table(3, generator), BOUND, 4)
    rows = 60 if relation is REPLACE else 211
    other = recorded(method, 7 * table(5, generator, rows) + 100, BOUND, 6, script=told.told)
    assert asked(other) == asked(told)
    assert other.outcome.parameters == told.outcome.parameters
    assert other.outcome.count == told.outcome.count
    for name in ("mean", "values", "errors"):
        one, two = (getattr(each.outcome.estimate, name) for each in (told, other))
        assert one.tolist() == two.tolist()


def asked(of: Transcript) -> list[Any]:
    return [(schema, [spelled(query) for query in queries]) for queries, schema in of.asked]


def test_all_of_the_budget_is_spent_and_no_more(generator: Callable[[int], Any]) -> None:
    for relation in (ADD_REMOVE, REPLACE):
        method = CentredCovariance(guarantee=ZCDP(0.7), neighbours=relation)
        chain = recorded(method, table(3, generator), BOUND, 4).chain
        assert Fraction(1) - Fraction(1, 10**9) < chain.spent / chain.budget.square <= 1
        assert [float(chain.budget.square), chain.budget.profile.mu] == pytest.approx(
            [1.4, 1.4**0.5]
        )


def test_a_number_of_rows_that_is_private_is_never_exact(generator: Callable[[int], Any]) -> None:
    method = CentredCovariance(guarantee=ZCDP(0.5))
    counts = {recorded(method, table(3, generator), BOUND, seed).outcome.count for seed in range(4)}
    assert len(counts) == 4
    replaced = CentredCovariance(guarantee=ZCDP(0.5), neighbours=REPLACE)
    assert recorded(replaced, table(3, generator), BOUND, 1).outcome.count == 60


# Oracles: the same in plain NumPy, in float64


def in_plain(rows: Any, centre: Any, root: Any, norm: float) -> Any:
    """The Gram matrix of clipped differences."""
    w = (np.clip(np.nan_to_num(rows, posinf=1e300, neginf=-1e300), -BOUND, BOUND) - centre) * root
    w *= np.minimum(1, norm / np.linalg.norm(w, axis=1))[:, None]
    return w.T @ w


@pytest.mark.parametrize("metric", METRICS)
def test_what_is_asked_is_a_histogram_of_lengths_and_a_matrix_of_clipped_differences(
    metric: str, generator: Callable[[int], Any]
) -> None:
    rows = table(1, generator, 400)
    rows[:3] = [[np.nan] * 3, [1e300, -np.inf, 0], [BOUND, -BOUND, BOUND]]
    method = CentredCovariance(guarantee=ZCDP(0.05), metric=metric)
    made = recorded(method, rows, BOUND, 2)
    estimate = made.outcome.estimate
    root = np.full(3, 1 / BOUND)  # of equal bounds the metrics are the same
    lengths, gram = (queries[0].statistic for queries, _ in made.asked[1:])
    assert isinstance(lengths, LengthHistogram)
    assert isinstance(gram, MappedGram)
    squares = made.asked[2][0][1].statistic
    assert isinstance(squares, MappedNorms)
    whole, longer = exact_sums(rows, made.asked[2][1], [gram, squares], threads=1)
    expected = in_plain(rows, estimate.mean, root, estimate.norm)
    found = whole.astype(float).reshape(3, 3) * float(gram.unit)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.trace(expected))
    (counts,) = exact_sums(rows, made.asked[1][1], [lengths], threads=1)
    cells = np.clip(np.nan_to_num(rows, posinf=1e300, neginf=-1e300), -BOUND, BOUND)
    far = np.linalg.norm((cells - estimate.mean) * root, axis=1)
    limited = np.minimum(far, 2 * estimate.norm) ** 2
    assert int(longer[0]) * float(squares.unit) == pytest.approx(limited.sum(), rel=1e-4)
    edges = np.append(lengths.edges, np.inf)
    np.testing.assert_array_equal(counts.astype(int), np.histogram(far, edges)[0])
    assert (far <= centred._SLACK * 2 ** (1 / 4) * lengths.edges[-1]).all()


def test_bounds_of_many_widths_are_measured_as_the_metric_says(
    generator: Callable[[int], Any],
) -> None:
    widths = np.array([1000.0, 10.0, 0.001])
    rows = np.clip(generator(2).normal(0.2, 0.2, (300, 3)), -1, 1) * widths
    schema = dpl.Schema({f"c{i}": (-width, width) for i, width in enumerate(widths.tolist())})
    for metric, root in (
        ("bounds", 1 / widths),
        ("euclidean", np.maximum(1 / 1000, 1 / (4 * np.sqrt(3) * widths))),
    ):
        found = release(rows, schema, metric=metric, guarantee=ZCDP(0.5))
        errors = found.privacy_errors.values * np.outer(root, root)
        twice = np.sqrt((1 + np.eye(3)) / 2)
        np.testing.assert_allclose(errors / errors[0, 0], twice, rtol=1e-9)


def release(rows: Any, schema: dpl.Schema, **given: Any) -> Any:
    with simulation.door(5):
        return dpl.release_covariance(rows, schema, mechanism="centred_covariance", **given)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_without_noise_it_is_the_covariance_of_the_rows(
    relation: str, metric: str, generator: Callable[[int], Any]
) -> None:
    """Whatever their tails, wherever their middle: nothing is clipped then."""
    rows = generator(3).standard_t(3, (500, 4)) * [1, 2, 5, 0.5] + [5, -7, 0, 9]
    rows = np.clip(rows, -10, 10)
    schema = dpl.Schema({f"c{i}": (-10, 10) for i in range(4)})
    found = release(rows, schema, guarantee=SILENT, neighbours=relation, metric=metric)
    np.testing.assert_allclose(found.covariance.values, np.cov(rows.T), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.mean.values, rows.mean(axis=0), atol=1e-4)
    theirs = PCA().fit(rows)
    mine = found.pca(4)
    signs = np.sign((mine.components * theirs.components_).sum(axis=1))
    np.testing.assert_allclose(mine.components, theirs.components_ * signs[:, None], atol=1e-4)
    np.testing.assert_allclose(mine.explained_variance, theirs.explained_variance_, rtol=1e-4)


def test_its_errors_are_those_of_its_noise(generator: Callable[[int], Any]) -> None:
    """Of the last sum: entries off the diagonal spread as it says; variances are also clipped."""
    rows = generator(4).uniform(-1, 1, (4000, 3)) + np.array([5, 0, -5])
    schema = dpl.Schema({f"c{i}": (-10, 10) for i in range(3)})
    given: dict[str, Any] = {"guarantee": ZCDP(0.2), "mechanism": "centred_covariance"}
    runs = []
    for seed in range(60):
        with simulation.door(seed):
            runs.append(dpl.release_covariance(rows, schema, **given))
    spread = np.std([run.covariance.values for run in runs], axis=0)
    told = np.median([run.privacy_errors.values for run in runs], axis=0)
    off = ~np.eye(3, dtype=bool)
    assert ((spread / told > 0.6) & (spread / told < 2))[off].all()
    assert np.diag(spread).max() < 0.1 * rows.var(axis=0).min()


# Principal components


def away(seed: int, generator: Any, rows: int = 2000) -> tuple[Any, Any]:
    """Rows far from the middle of their bounds, one direction of which is wide; and that."""
    random = generator(seed)
    first = np.array([1.0, -1, 1, -1, 0, 0, 0, 0]) / 2
    noise = random.normal(size=(rows, 8)) * 0.05
    return noise + random.normal(size=(rows, 1)) * 0.25 * first - 0.6, first


def test_components_of_rows_off_the_middle_are_their_own(generator: Callable[[int], Any]) -> None:
    """Around the middle of the bounds, at this budget, mostly noise is found."""
    X, first = away(6, generator)
    found: dict[Any, float] = {}
    for centre in ("private", None):
        seen = []
        for seed in range(9):
            with simulation.door(seed):
                model = PrivatePCA(1, bounds=(-1, 1), epsilon=0.3, centre=centre).fit(X)
            seen.append(float(model.components_[0] @ first) ** 2)
        found[centre] = float(np.median(seen))
    assert found["private"] > 0.9
    assert found["private"] > found[None]


@pytest.mark.filterwarnings("ignore:.*the noise is larger than the table")
@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_no_rows_and_next_to_no_budget_give_numbers(
    relation: str, epsilon: float, rows: int
) -> None:
    with simulation.door(3):
        model = PrivatePCA(bounds=(0, 1), epsilon=epsilon, neighbours=relation)
        found = model.fit(np.full((rows, 5), 0.3)).components_
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found @ found.T, np.eye(5), atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "way"),
    [
        ({}, "centred_covariance"),
        ({"centre": "private"}, "centred_covariance"),
        ({"centre": None}, "analyze_gauss"),
        ({"row_norm": 1.0}, "analyze_gauss"),
        ({"mechanism": "additive_wishart"}, "additive_wishart"),
        ({"bounds": (-1e120, 1e120)}, "analyze_gauss"),
    ],
    ids=str,
)
def test_which_way_is_taken_is_public(arguments: dict[str, Any], way: str) -> None:
    model = PrivatePCA(**({"bounds": (-1, 1)} | arguments)).fit(np.full((300, 2), 0.5))
    assert model.certificate_.mechanism == way
    assert model.release_.certificate == model.certificate_
    assert hasattr(model, "moments_") == (way != "centred_covariance")


@pytest.mark.parametrize(
    "arguments",
    [
        {"centre": "mean"},
        {"centre": 0.5},
        {"centre": True},
        {"centre": "private", "row_norm": 1.0},
        {"centre": "private", "mechanism": "sketch"},
    ],
    ids=str,
)
def test_centres_that_cannot_be_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match="'centre' parameter of PrivatePCA"):
        PrivatePCA(bounds=(-1, 1), **arguments).fit(np.zeros((3, 2)))


def test_moments_of_an_earlier_fit_are_not_left_beside_others() -> None:
    model = PrivatePCA(bounds=(-1, 1), centre=None).fit(np.full((300, 2), 0.5))
    model.set_params(centre="private").fit(np.full((300, 2), 0.5))
    assert not hasattr(model, "moments_")


# Planted bugs


def caught(generator: Any, relation: Neighbours = ADD_REMOVE) -> bool:
    rows = table(1, generator)
    method = CentredCovariance(guarantee=ZCDP(5.0), neighbours=relation)
    farthest, spent = apart(recorded(method, rows, BOUND, 2), neighbours(rows, relation))
    return farthest > 1 or spent > 1


def test_differences_that_are_not_clipped_are_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Callable[[int], Any]
) -> None:
    def unclipped(self: MappedGram, rows: Any) -> Any:
        return np.rint(self.integers @ rows * self._step)

    monkeypatch.setattr(MappedGram, "_clip", unclipped)
    assert caught(generator)


def test_lengths_that_count_twice_are_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Callable[[int], Any]
) -> None:
    honest = LengthHistogram.sum
    monkeypatch.setattr(LengthHistogram, "sum", lambda self, rows: 2 * honest(self, rows))
    assert caught(generator)


def test_a_centre_of_the_rows_themselves_is_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Callable[[int], Any]
) -> None:
    """Exact sums in place of released ones: then what is asked depends on more than was told."""
    method, rows = CentredCovariance(guarantee=ZCDP(0.5)), table(3, generator)
    honest = centred._find_centre

    def careless(sums: NoisySums, view: Any, root: Any, counted: Any) -> Any:
        found = honest(sums, view, root, counted)
        (exact,) = view.sums([MappedSum(view.shape, found.matrix(view), 100.0)])
        return centred._Centre(found.count, found.point + float(exact[0]), root, found.variance)

    monkeypatch.setattr(centred, "_find_centre", careless)
    told = recorded(method, rows, BOUND, 4)
    other = recorded(method, table(5, generator, 211), BOUND, 6, script=told.told)
    assert asked(other) != asked(told)
