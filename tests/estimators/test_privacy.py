"""What fit may look at, and when; what errors may say; who is told of a spend."""

import datetime as dt
import pickle
import warnings
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from dplinear.arguments import ArgumentTypeError
from dplinear.estimators import (
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivatePCA,
    PrivateProjection,
    PrivateRidge,
)
from dplinear.estimators.tables import features_of, plain_numbers, targets_of
from dplinear.exact.blocks import Blocks
from dplinear.ledger import Request, tally
from dplinear.noise import simulation
from dplinear.privacy.guarantees import ZCDP, ApproxDP
from refusals import refused
from services import library

from .faces import ALL, PREDICTORS, REGRESSORS, face, released, table


class TouchedError(Exception):
    pass


class Untouchable:
    """A table that raises whatever is done with it."""

    def __getattribute__(self, name: str) -> NoReturn:
        raise TouchedError(name)

    def _touch(self, *_: object) -> NoReturn:
        raise TouchedError

    __len__ = __iter__ = __getitem__ = __array__ = __str__ = __repr__ = __bool__ = _touch


class RefusedError(Exception):
    pass


class Purse:
    """A ledger in memory, with room for so many spends."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.requests: list[Request] = []

    def spend(self, request: Request) -> None:
        if len(self.requests) == self.room:
            raise RefusedError
        self.requests.append(request)


WRONG: list[tuple[Any, dict[str, Any]]] = [
    (kind, {"bounds": bounds})
    for kind in ALL
    for bounds in (None, 3, "wide", (), (1, 1), (2, 1), (0, np.nan), (0, 1, 2), [(0, 1), 3])
]
WRONG += [
    (kind, {"bounds": bounds})
    for kind in ALL
    for bounds in ({}, {"a": 3}, {3: (0, 1)}, {"a": (1, 0)})
]
WRONG += [(kind, {"target_bounds": {"y": (0, 1)}}) for kind in REGRESSORS]
WRONG += [(kind, {"target_bounds": None}) for kind in REGRESSORS]
WRONG += [(kind, {"target_bounds": (5, -5)}) for kind in REGRESSORS]
WRONG += [(kind, {"fit_intercept": "yes"}) for kind in PREDICTORS]
WRONG += [(kind, {"epsilon": value}) for kind in ALL for value in (-1, None, "much")]
WRONG += [(kind, {"delta": 2}) for kind in ALL]
WRONG += [(kind, {"guarantee": ZCDP(0.1)}) for kind in ALL]
WRONG += [(kind, {"alpha": value}) for kind in (PrivateRidge, PrivateLasso) for value in (-1, "a")]
WRONG += [(PrivatePCA, {"n_components": value}) for value in (0, 1.5, "mle")]
WRONG += [
    (PrivateLogisticRegression, {"classes": value})
    for value in (None, 2, "no", (0,), (1, 1), (0, "yes"), (0, 1, 2), (0, np.nan), [[0], [1]])
]
WRONG += [(PrivateLinearRegression, {"mechanism": value}) for value in ("magic", None, 3)]
WRONG += [(PrivateLogisticRegression, {"mechanism": value}) for value in ("frank_wolfe", None)]


@pytest.mark.parametrize(("kind", "arguments"), WRONG)
def test_wrong_arguments_raise_before_the_table_is_touched(kind: Any, arguments: Any) -> None:
    estimator = face(kind, **arguments)
    sentence = f"parameter of ({kind.__name__}|ApproxDP) must be"
    with pytest.raises((TypeError, ValueError), match=sentence):
        estimator.fit(Untouchable(), Untouchable())


def test_the_untouchable_table_is_touched_once_the_arguments_are_right() -> None:
    for kind in ALL:
        with pytest.raises(TouchedError):
            face(kind).fit(Untouchable(), Untouchable())


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each block that the pass reads."""
    seen: list[int] = []
    update = Blocks.update_array

    def watched(self: Blocks[Any], block: Any) -> None:
        seen.append(len(block))
        update(self, block)

    monkeypatch.setattr(Blocks, "update_array", watched)
    return seen


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "arguments",
    [
        {"delta": 0.0},
        {"neighbours": "nobody"},
        {"row_norm": -1},
        {"ledger": 3, "dataset": "rows"},
        {"bounds": [(-1, 1)] * 2},
    ],
)
def test_what_the_gate_refuses_is_neither_spent_nor_read(
    kind: Any, arguments: Any, reads: list[int]
) -> None:
    with tally() as spent, pytest.raises((TypeError, ValueError), match="parameter of"):
        face(kind, **arguments).fit(*table())
    assert len(spent) == 0
    assert reads == []


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind is not PrivateLogisticRegression])
def test_a_mechanism_that_is_not_known_is_refused(kind: Any, reads: list[int]) -> None:
    with tally() as spent, pytest.raises(ValueError, match="parameter of"):
        face(kind, mechanism="magic").fit(*table())
    assert len(spent) == 0
    assert reads == []


@pytest.mark.parametrize("kind", ALL)
def test_a_ledger_that_refuses_stops_the_pass(kind: Any, reads: list[int]) -> None:
    purse = Purse(1)
    estimator = face(kind, ledger=purse, dataset="visits")
    estimator.fit(*table())
    assert [request.dataset for request in purse.requests] == ["visits"]
    assert sum(reads) == 400
    reads.clear()
    other = clone(estimator)
    with tally() as spent, pytest.raises(RefusedError):
        other.fit(*table())
    assert reads == []
    assert len(spent) == 0
    assert not hasattr(other, "certificate_")


@pytest.mark.parametrize("kind", [*ALL, PrivateMean, PrivateProjection])
@pytest.mark.parametrize(
    "url", ["postgresql://me:hush@host/base", "postgresql:///base?user=me&password=hush"]
)
def test_scikit_learn_is_given_no_password_to_print(kind: Any, url: str) -> None:
    with pytest.raises(ValueError, match="a URL without a password") as error:
        face(kind, ledger=url, dataset="visits").fit(Untouchable(), Untouchable())
    assert "hush" not in str(error.value)


URLS = (
    "postgresql://me:a/hush@host/base",
    "postgresql://me:a?hush@host/base",
    "postgresql://me:a#hush@host/base",
    "postgres://me:a hush'@host/base",
    "postgresql:///base?pass%77ord=hush",
    " PostgreSQL:/me:hush@host",
    "postgresql//me:hush@host/base",
    "host=host password=hush",
)
SPELT: list[Any] = [(kind, str, URLS[0]) for kind in (*ALL, PrivateMean, PrivateProjection)]
SPELT += [(PrivateRidge, given, url) for given in (str, Path, str.encode) for url in URLS]


@pytest.mark.parametrize(("kind", "given", "url"), SPELT)
def test_no_estimator_shows_a_password_fitted_or_not(kind: Any, given: Any, url: str) -> None:
    made: Any = kind(ledger=given(url), bounds=(0, 1), epsilon=1.0, delta=1e-6)
    pipeline: Any = make_pipeline(made)
    copies = [made, clone(made), pickle.loads(pickle.dumps(made)), kind().set_params(ledger=url)]
    printed = [each for one in copies for each in (repr(one), str(one), f"{one.ledger}")]
    printed += [one._repr_html_() for one in (made, pipeline)]
    printed += [repr(pipeline), str(made.get_params()), "%s" % made.ledger]  # noqa: UP031 - as logs do
    for call, given_to_it in (
        (made.set_params, {"nonsense": 1}),
        (made.fit, {"X": Untouchable(), "y": Untouchable()}),
    ):
        with pytest.raises((ValueError, TypeError)) as error:
            call(**given_to_it)
        found: BaseException | None = error.value
        while found is not None:
            printed.append(str(found))
            found = found.__cause__ or found.__context__
    assert not [text for text in printed if "hush" in text]
    if given is str:
        assert made.ledger == url  # to those who connect


def test_a_table_without_rows_is_not_told_of_an_argument_that_nobody_gave() -> None:
    made = PrivateLinearRegression(
        epsilon=1.0, delta=1e-5, bounds=(0, 1), target_bounds=(0, 1), neighbours="replace"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise is all there is
        fitted = made.fit(np.empty((0, 2)), np.empty(0))
    assert "whatever the number of rows" in fitted.certificate_.notes[0]


def test_every_clone_spends_from_the_same_ledger() -> None:
    purse = Purse(100)
    pipeline = make_pipeline(
        PrivatePCA(2, bounds=(-1, 1), ledger=purse), face(PrivateRidge, epsilon=5, ledger=purse)
    )
    search = GridSearchCV(pipeline, {"privateridge__alpha": [0.1, 1.0]}, cv=3)
    with tally() as spent:
        search.fit(*table())
    assert len(spent) == len(purse.requests) == 2 * (2 * 3 + 1)
    assert clone(pipeline)[0].ledger is purse


def test_a_search_costs_every_fit() -> None:
    search = GridSearchCV(face(PrivateRidge), {"alpha": [0.1, 1.0, 10.0]}, cv=4)
    with tally() as spent:
        search.fit(*table())
    assert len(spent) == 3 * 4 + 1
    assert str(spent).startswith("13 releases")
    total = spent.total()
    assert isinstance(total, ApproxDP)
    assert total.epsilon > search.best_estimator_.certificate_.holds.epsilon


def observed(estimator: Any, X: Any, y: Any) -> tuple[Any, ...]:
    """Return all that a fit shows besides numbers: shapes, types, names and messages."""
    with warnings.catch_warnings(record=True) as caught, simulation.door(0):
        warnings.simplefilter("always")
        try:
            estimator.fit(X, y)
        except Exception as error:
            return type(error), str(error)
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    shapes = {name: (type(value), np.shape(value)) for name, value in fitted.items()}
    return shapes, sorted(str(warning.message) for warning in caught)


CELLS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0]
TIME = np.datetime64(1, "s")
OBJECTS = [*CELLS, None, "12", "twelve", b"3", {"a": 1}, [1, 2], 3 + 4j, 10**400, TIME]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("cell", CELLS)
def test_neighbours_of_floats_look_the_same(kind: Any, cell: float) -> None:
    X, y = table()
    spoilt, target = X.copy(), y.copy()
    spoilt[3], target[3] = cell, cell
    wanted = observed(face(kind), X, y)
    assert observed(face(kind), spoilt, target) == wanted
    assert observed(face(kind), np.vstack([X, spoilt[3]]), np.append(y, cell)) == wanted
    assert "coef_" in wanted[0] or "components_" in wanted[0]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("cell", OBJECTS, ids=repr)
@pytest.mark.parametrize("listed", [False, True])
def test_neighbours_of_objects_and_lists_look_the_same(kind: Any, cell: Any, listed: bool) -> None:
    X, y = (part.astype(object) for part in table(60))
    spoilt, target = X.copy(), y.copy()
    spoilt[3, 1] = target[3] = cell
    tables = [(X, y), (spoilt, target)]
    if listed:
        tables = [(rows.tolist(), aims.tolist()) for rows, aims in tables]
    wanted, found = (observed(face(kind), *pair) for pair in tables)
    assert found == wanted
    assert "coef_" in wanted[0] or "components_" in wanted[0]


@pytest.mark.parametrize("kind", ALL)
def test_empty_and_constant_tables_are_fitted(kind: Any) -> None:
    shapes = observed(face(kind), *table())[0]
    for X, y in ((np.empty((0, 3)), np.empty(0)), (np.ones((50, 3)), np.ones(50))):
        assert observed(face(kind), X, y)[0] == shapes


def rows_shown(model: Any) -> float:
    """Return how many rows a release shows."""
    if hasattr(model, "moments_"):
        return float(model.moments_.unbiased_estimate[0, 0])
    if hasattr(model, "release_"):
        return float(model.release_.count)
    return float(model.fit_result_.count)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("rows", "neighbours", "row_norm"),
    [(0, "add_remove", None), (0, "add_remove", 1.5), (3, "replace", 1.5), (3, "replace", None)],
)
def test_noise_larger_than_the_table_is_said_and_gives_numbers(
    kind: Any, rows: int, neighbours: str, row_norm: float | None
) -> None:
    X, y = table(rows)
    said = []
    for seed in range(4):
        with warnings.catch_warnings(record=True) as caught, simulation.door(seed):
            warnings.simplefilter("always")
            model = face(kind, neighbours=neighbours, row_norm=row_norm).fit(X, y)
        # Clipped rows weigh less than one in moments, but count as one in a count.
        public = neighbours == "replace" and not (row_norm and hasattr(model, "moments_"))
        hidden = not public and rows_shown(model) < 2
        assert len(caught) == hidden
        assert all(f"{kind.__name__}: the noise is larger" in str(one.message) for one in caught)
        assert np.isfinite(model.coef_ if kind in PREDICTORS else model.components_).all()
        said.append(hidden)
    assert any(said) != public


@pytest.mark.parametrize("kind", ALL)
def test_errors_quote_no_cell_and_no_number_of_rows(kind: Any) -> None:
    secret = 123.456
    X, y = np.full((777, 3), secret), np.full(777, secret)
    wrong: list[tuple[Any, Any]] = [
        (X[:, 0], y),
        (X[:, :, None], y),
        (X[:, :0], y),
        (X.astype(complex), y),
        (X.astype("datetime64[s]"), y),
        (sparse.csr_array(X), y),
    ]
    if kind in PREDICTORS:
        wrong += [(X, y[:-1]), (X, X[:, :, None]), (X, y.astype(complex)), (X, secret)]
        wrong += [(X, X[:, :0]), (X, sparse.csr_array(X))]
    for features, targets in wrong:
        with pytest.raises((TypeError, ValueError)) as caught:
            face(kind).fit(features, targets)
        assert str(caught.value).startswith(f"The '{'X' if features is not X else 'y'}' parameter")
        for word in ("123", "456", "77"):
            assert word not in str(caught.value)


def test_sparse_tables_are_refused_by_their_type() -> None:
    X, y = table()
    model = face(PrivateRidge).fit(X, y)
    for call in (model.predict, lambda rows: model.fit(rows, y)):
        with refused("X", "PrivateRidge", "sparse input is not supported", kind=ArgumentTypeError):
            call(sparse.csr_array(X))


def test_a_masked_cell_is_missing() -> None:
    X, y = table(50)
    hidden = np.ma.array(X, mask=False)
    hidden[7, 1] = np.ma.masked
    spoilt = X.copy()
    spoilt[7, 1] = np.nan
    with simulation.door(0):
        first = face(PrivateLinearRegression).fit(hidden, y)
        second = face(PrivateLinearRegression).fit(spoilt, y)
    np.testing.assert_array_equal(released(first), released(second))
    np.testing.assert_array_equal(first.predict(hidden), first.predict(spoilt))


@pytest.mark.parametrize("spoilt", [False, True])
def test_text_is_read_as_the_numbers_it_writes(spoilt: bool) -> None:
    X, y = table(60)
    text, aims = X.astype(str), y.astype(str)
    written = np.char.encode(text)
    if spoilt:
        X[3, 1], text[3, 1], written[3, 1] = np.nan, "\xff", b"\xff"
    pairs = [(X, y), (text, y), (written, y), (text, aims), (written, aims), (X, aims)]
    with simulation.door(0):
        models = [face(PrivateRidge).fit(*pair) for pair in pairs]
    for model in models[1:]:
        np.testing.assert_array_equal(model.moments_.values, models[0].moments_.values)


def test_other_guarantees_take_the_place_of_epsilon_and_delta() -> None:
    model = face(PrivateRidge, epsilon=None, delta=None, guarantee=ZCDP(0.5)).fit(*table())
    assert model.certificate_.holds == ZCDP(0.5)


@pytest.mark.parametrize("kind", ALL)
def test_fits_differ_without_the_door_and_survive_pickling(kind: Any) -> None:
    X, y = table()
    one, two = face(kind).fit(X, y), face(kind).fit(X, y)
    assert not np.array_equal(released(one), released(two))
    assert not one.certificate_.simulated
    loaded = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(released(loaded), released(one))
    method = "predict" if kind in PREDICTORS else "transform"
    np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(one, method)(X))


@pytest.mark.engine
@pytest.mark.parametrize("bystander", [0.25, 1, np.timedelta64(1, "ns"), np.datetime64(1, "ns")])
@pytest.mark.parametrize("cell", ["text", None, 0.5, 1j, np.timedelta64(1, "ns")])
def test_a_cell_that_changes_its_columns_dtype_changes_no_other_row(
    cell: Any, bystander: Any
) -> None:
    frame = library("pandas").DataFrame
    alone, beside = frame({"a": [bystander] * 3}), frame({"a": [bystander] * 3 + [cell]})
    seen = []
    for X in (alone, beside.iloc[:3]):
        with simulation.door(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = PrivatePCA(bounds=(0, 1), epsilon=1e6).fit(X).release_
            seen.append(found.pca(1).explained_variance.tolist())
    assert seen[0] == seen[1]


@pytest.mark.filterwarnings("ignore:.*the noise is larger than the table")
def test_cells_of_an_arrow_table_are_not_taken_for_names_of_its_columns() -> None:
    arrow = library("pyarrow")
    alike, apart = (arrow.table({"a": [0.5, 0.25], "b": [0.5, last]}) for last in (0.25, 0.75))
    for given in (alike, apart):
        fitted = face(PrivateLinearRegression).fit(given, [0.1, 0.2])
        assert list(fitted.feature_names_in_) == ["a", "b"]
    twice = arrow.table([[0.5], [0.25]], names=["a", "a"])
    with refused("X", "PrivateLinearRegression", "different names", got="['a', 'a']"):
        face(PrivateLinearRegression).fit(twice, [0.1])


def _mixed(library_: Any) -> list[tuple[Any, Any]]:
    """Return pairs of tables: with a last row, and without it."""
    moment, span = dt.datetime(2026, 1, 1), dt.timedelta(1)
    rows: list[Any] = [
        (1, moment),
        (1, span),
        (True, moment),
        (0.5, moment),
        (0.5, span),
        (True, "0.5"),
    ]
    found = []
    for first, second in rows:
        for a, b in ((None, second), (first, None)):
            both = {"a": [first, first, a], "b": [second, second, b]}
            less = {name: cells[:2] for name, cells in both.items()}
            found.append((library_(both), library_(less)))
    return found


@pytest.mark.engine
@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_a_missing_cell_changes_no_other_column(name: str) -> None:
    made = library(name)
    for longer, shorter in _mixed(made.table if name == "pyarrow" else made.DataFrame):
        one, other = (plain_numbers(features_of(X, "fit")) for X in (longer, shorter))
        np.testing.assert_array_equal(one[:2], other)


def test_cells_of_an_arrow_column_are_read_one_by_one() -> None:
    arrow = library("pyarrow")
    words = arrow.array(["0.25", None, "0.5"]).dictionary_encode()
    ends = arrow.array([0, 4, 6], arrow.int32()).buffers()[1]
    broken = arrow.Array.from_buffers(
        arrow.string(), 2, [None, ends, arrow.py_buffer(b"0.25\xff\xfe")]
    )
    for cells in (words, broken):
        for X in (arrow.table({"a": cells}), arrow.record_batch({"a": cells})):
            read = plain_numbers(features_of(X, "fit"))[:2, 0]
            np.testing.assert_array_equal(read, [0.25, np.nan])
        for y in (cells, arrow.chunked_array([cells])):
            column = targets_of(y, len(cells), "fit")
            np.testing.assert_array_equal(plain_numbers(column)[:2], [0.25, np.nan])


@pytest.mark.engine
@pytest.mark.parametrize("name", ["polars", "pyarrow"])
@pytest.mark.parametrize("last", [True, None])
def test_labels_of_an_arrow_column_are_what_they_mean(name: str, last: bool | None) -> None:
    """DuckDB reads a column of yes and no as truth values, and as text beside one other word."""
    made = library(name)
    words = np.array(["no", "yes"] * 49 + ["no", "yes" if last else "maybe"])
    hold = made.Series if name == "polars" else made.array
    fits = []
    for labels in (words, hold(words), hold([False, True] * 49 + [False, last])):
        with simulation.door(0):
            model = face(PrivateLogisticRegression, classes=("no", "yes"), epsilon=100.0)
            fits.append(model.fit(np.tile([[0.1], [0.9]], (50, 1)), labels).coef_.tolist())
    assert fits[0] == fits[1] == fits[2]


@pytest.mark.engine
def test_long_integers_of_polars_are_numbers() -> None:
    """One of them makes 128 bits of a whole column, which Arrow has no type for."""
    polars = library("polars")
    cells = polars.Series("a", [1, -2, None, 2**70], dtype=polars.Int128)
    for X in (cells.to_frame(), polars.DataFrame({"a": [1.0, -2.0, None, 2.0**70]})):
        read = plain_numbers(features_of(X, "fit"))[:, 0]
        np.testing.assert_array_equal(read, [1, -2, np.nan, 2.0**70])
    np.testing.assert_array_equal(plain_numbers(targets_of(cells, 4, "fit")), read)


@pytest.mark.engine
def test_lazy_frames_are_refused_without_a_look() -> None:
    lazy = library("polars").LazyFrame({"a": [0.5]})
    with refused(
        "X", "PrivateLinearRegression", kind=ArgumentTypeError, hint="collect a lazy frame first"
    ):
        face(PrivateLinearRegression).fit(lazy, [0.1])


@pytest.mark.filterwarnings("ignore:.*the noise is larger than the table")
def test_one_target_has_one_name_however_it_is_held() -> None:
    held: list[list[Any]] = [[], [[0.1]], [0.1]]
    for y in held:
        fitted = face(PrivateRidge).fit(np.full((len(y), 2), 0.5), y)
        assert "y" in fitted.schema_.columns
