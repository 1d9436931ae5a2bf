"""The gate for one model: what is checked, in which order, and what comes out."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression

import dplinear
from dplinear.curator import Schema, release_model
from dplinear.curator.gates.one_model import OneModel, most_squared
from dplinear.exact.grid import Grid, round_to_grid
from dplinear.ledger import tally
from dplinear.noise import simulation
from dplinear.papers import wang
from dplinear.privacy import GDP, ZCDP, ApproxDP, PureDP
from dplinear.registry import MODELS

from .witnesses import Book, Watched

pytestmark = pytest.mark.heavy  # our own rules, whatever the versions

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
PLENTY: dict[str, Any] = {"epsilon": 1e6, "delta": 1e-6}
SCHEMA = Schema(
    {"age": (0, 100), "bmi": (10, 60), "smoker": ["no", "yes"], "charges": (-50, 400)},
    derived=["age^2", "bmi*smoker"],
)


def table(rows: int, seed: int = 1) -> pa.Table:
    generator = simulation.generator(seed)
    age, bmi = generator.uniform(0, 100, rows), generator.uniform(10, 60, rows)
    smoker = generator.uniform(size=rows) < 0.3
    charges = 5 + 2 * age + bmi + 30 * smoker + generator.standard_normal(rows) * 5
    names = np.where(smoker, "yes", "no")
    return pa.table({"charges": charges, "smoker": names, "bmi": bmi, "age": age})


TABLE = table(4000)
WAYS = [
    ("whitened_descent", "exact"),
    ("coinpress", "exact"),
    ("adassp", "exact"),
    ("adassp", "paper"),
]
gates: dict[str, Any] = {"exact": release_model, "paper": wang.release_model}
by_method = pytest.mark.parametrize("method", MODELS["squared"])


def chosen(method: str, calibration: str) -> dict[str, Any]:
    """A paper has a gate of its own."""
    return {"mechanism": method} if calibration == "exact" else {}


@pytest.mark.parametrize(("method", "calibration"), WAYS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_a_model_says_what_it_promises(neighbours: str, method: str, calibration: str) -> None:
    book = Book()
    model = gates[calibration](
        TABLE,
        SCHEMA,
        "charges",
        ["age", "bmi", "smoker"],
        **BUDGET,
        neighbours=neighbours,
        **chosen(method, calibration),
        ledger=book,
        dataset="visits",
        request="first",
    )
    certificate = model.certificate
    assert model.names == ("age", "bmi", "smoker=yes", "smoker=other")
    assert certificate.mechanism == method
    assert certificate.numerics == "exact"
    assert certificate.asked == ApproxDP(1.0, 1e-6)
    if calibration == "exact":
        assert certificate.holds == certificate.asked
        assert 0.999e-6 < dict(certificate.curve)[1.0] <= 1e-6
    else:  # the published split keeps more than it claims, at these ε and δ
        assert certificate.holds.epsilon < 0.9
    assert model.rows == (4000 if neighbours == "replace" else None)
    assert model.count == pytest.approx(4000, abs=6 * 5 * 4 * 5)
    (spent,) = book.requests
    assert spent.guarantee == certificate.holds
    assert (spent.request, spent.dataset, spent.mechanism) == ("first", "visits", method)
    assert spent.parameters["target"] == "charges"


def oracle(model: Any, data: pa.Table, features: list[str], *, intercept: bool = True) -> None:
    columns = {
        "age": data["age"].to_numpy(),
        "bmi": data["bmi"].to_numpy(),
        "smoker=yes": (data["smoker"].to_numpy(zero_copy_only=False) == "yes").astype(float),
        "smoker=other": np.zeros(data.num_rows),
        "age^2": data["age"].to_numpy() ** 2,
    }
    X = np.column_stack([columns[name] for name in features])
    fitted = LinearRegression(fit_intercept=intercept).fit(X, data["charges"].to_numpy())
    assert model.names == tuple(features)
    # A descent clips the farthest residuals: up to a hundredth of a standard deviation of errors.
    loose = 1 if model.certificate.mechanism == "adassp" else 50
    assert model.coefficients.values == pytest.approx(fitted.coef_, rel=1e-4, abs=1e-4 * loose)
    assert model.intercept == pytest.approx(fitted.intercept_, abs=2e-3 * loose)
    assert model.predict(X) == pytest.approx(fitted.predict(X), abs=1e-3 * loose)


@by_method
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_without_noise_it_is_least_squares(neighbours: str, method: str) -> None:
    data = table(60_000)
    more: dict[str, Any] = {**PLENTY, "neighbours": neighbours, "mechanism": method}
    features = ["age", "bmi", "smoker=yes", "smoker=other"]
    with simulation.door(4):
        oracle(release_model(data, SCHEMA, "charges", features, **more), data, features)
        oracle(release_model(data, SCHEMA, "charges", "age", **more), data, ["age"])
        alone = release_model(data, SCHEMA, "charges", ["bmi", "age"], intercept=False, **more)
    oracle(alone, data, ["bmi", "age"], intercept=False)


def test_groups_stand_for_their_features_and_none_for_all() -> None:
    model = release_model(TABLE, SCHEMA, "charges", ["smoker", "bmi*smoker"], **BUDGET)
    assert model.names == ("smoker=yes", "smoker=other", "bmi*smoker=yes", "bmi*smoker=other")
    everything = release_model(TABLE, SCHEMA, "charges", **BUDGET)
    assert everything.names == tuple(n for n in SCHEMA.names[1:] if n != "charges")
    level = release_model(TABLE, SCHEMA, "smoker=yes", ["age"], **BUDGET)
    assert level.target == "smoker=yes"


def test_only_the_columns_of_the_model_are_read() -> None:
    narrow = TABLE.select(["age", "charges"])
    bounds: dict[str, Any] = {**BUDGET, "mechanism": "adassp"}
    part = SCHEMA.select(["age", "charges"], intercept=True).leaving_out()
    assert release_model(narrow, SCHEMA, "charges", "age", **BUDGET).schema == part
    model = release_model(narrow, SCHEMA, "charges", "age", **bounds)
    assert model.schema.columns == ("age", "charges")
    assert model.certificate.parameters["feature_bound"] == pytest.approx(2**0.5)
    assert model.certificate.parameters["target_bound"] == 1
    squared = release_model(narrow, SCHEMA, "charges", "age^2", **bounds)
    assert squared.certificate.parameters["feature_bound"] == pytest.approx(2**0.5)


@pytest.mark.parametrize("mechanism", ["whitened_descent", "adassp"])
def test_a_refused_spend_reads_nothing(mechanism: str) -> None:
    watched = Watched(TABLE)  # it may be a stream
    arguments: dict[str, Any] = {"schema": SCHEMA, "target": "charges", **BUDGET}
    arguments["mechanism"] = mechanism
    with pytest.raises(PermissionError, match="the budget is spent"):
        release_model(watched, ledger=Book(refuse=True), **arguments)
    assert not watched.read
    release_model(watched, ledger=Book(), **arguments)
    assert watched.read


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "epsilon' parameter of release_model must be given"),
        ({"epsilon": 1.0}, "delta=1e-6"),
        ({"guarantee": PureDP(1.0)}, "delta=1e-6"),
        ({"guarantee": GDP(1.0)}, "not μ-GDP"),
        ({"guarantee": ZCDP(1.0), "epsilon": 1.0}, "left out where epsilon or delta"),
        (BUDGET | {"target": "charge"}, "'target' parameter of release_model.*\n\n.*'charges'"),
        (BUDGET | {"target": "smoker"}, "'target' parameter of release_model must be a single"),
        (BUDGET | {"target": ["charges"]}, "'target' parameter of release_model"),
        (BUDGET | {"target": "intercept"}, "other than the intercept"),
        (BUDGET | {"features": ["height"]}, "'features' parameter of release_model"),
        (BUDGET | {"features": []}, "at least one feature"),
        (BUDGET | {"features": ["age", "age"]}, "named twice"),
        (BUDGET | {"features": ["age", "charges"]}, "free of the target"),
        (BUDGET | {"features": 7}, "'features' parameter of release_model"),
        (BUDGET | {"intercept": 1}, "'intercept' parameter of release_model"),
        (BUDGET | {"mechanism": "magic"}, "'mechanism' parameter of release_model"),
        (BUDGET | {"mechanism": np.zeros(2)}, "'mechanism' parameter of release_model"),
        (BUDGET | {"loss": "hinge"}, "'loss' parameter of release_model must be one of 'squared'"),
        (BUDGET | {"loss": 7}, "'loss' parameter of release_model"),
        (
            BUDGET | {"loss": "logistic", "mechanism": "adassp"},
            r"'mechanism' parameter of release_model.*\n\n.*a mechanism for loss=\"squared\"",
        ),
        (BUDGET | {"mechanism": "huber_descent"}, 'a mechanism for loss="huber"'),
        (BUDGET | {"loss": "logistic", "target": "bmi*smoker=yes"}, "an indicator or a numeric"),
        (BUDGET | {"loss": "logistic", "target": "age^2"}, "an indicator or a numeric column"),
        (BUDGET | {"loss": "logistic", "intercept": False}, "log-odds without an intercept"),
        (BUDGET | {"loss": "logistic", "guarantee": ZCDP(1.0)}, "left out where epsilon or delta"),
        (BUDGET | {"neighbours": "element"}, "neighbours"),
        (BUDGET | {"degrees": 5}, "degrees' parameter of release_model must be left out"),
        (BUDGET | {"mechanism": "adassp", "shares": (1, 1, 1)}, "'shares' parameter"),
        (
            BUDGET | {"shares": (0.1, 0.6, 0.3)},
            "shares' parameter of release_model must be left out",
        ),
        (BUDGET | {"calibration": "paper"}, "calibration"),
        (BUDGET | {"threads": 0}, "threads"),
        (BUDGET | {"dataset": ""}, "dataset"),
        (BUDGET | {"data": TABLE.drop_columns(["bmi"])}, "bmi"),
        (BUDGET | {"data": object()}, "data"),
        (BUDGET | {"data": np.zeros((3, 7))}, "'data' parameter"),
        (BUDGET | {"schema": ["age"]}, "a Schema"),
        (BUDGET | {"schema": Schema({"age": (0, 1), "charges": (0, 1)}, intercept=False)}, "ones"),
        (BUDGET | {"schema": Schema({"charges": (0, 1)})}, "leaves features to explain it"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(
    arguments: dict[str, Any], sentence: str
) -> None:
    book = Book()
    given = {"data": TABLE, "schema": SCHEMA, "target": "charges"} | arguments
    with pytest.raises((TypeError, ValueError), match=sentence):
        release_model(ledger=book, **given)
    assert not book.requests


def labelled(rows: int, seed: int = 7) -> pa.Table:
    """A table whose smokers follow log-odds of −1 + 0.05·age − 0.04·bmi."""
    generator = simulation.generator(seed)
    age, bmi = generator.uniform(0, 100, rows), generator.uniform(10, 60, rows)
    yes = generator.uniform(size=rows) < 1 / (1 + np.exp(1 - 0.05 * age + 0.04 * bmi))
    columns = {"age": age, "bmi": bmi, "smoker": np.where(yes, "yes", "no")}
    return pa.table(columns | {"charges": np.where(yes, 300.0, 20.0)})


@pytest.mark.parametrize("target", ["smoker=yes", "charges"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_without_noise_log_odds_are_the_likeliest(neighbours: str, target: str) -> None:
    """An indicator, or a number above the middle of its bounds: the same label here.

    Sampling errors are 0.0007 and 0.0014; the tolerance is a fiftieth of them.
    """
    data = labelled(20_000)
    X = np.column_stack([data["age"], data["bmi"]])
    yes = data["charges"].to_numpy() > 100
    # A penalty of 1e-8 of a unit stands for none, in every version of scikit-learn.
    fitted = LogisticRegression(C=1e8, tol=1e-10, max_iter=10_000).fit(X, yes)
    with simulation.door(8):
        model = release_model(
            data, SCHEMA, target, ["age", "bmi"], loss="logistic", neighbours=neighbours, **PLENTY
        )
    assert model.loss == "logistic"
    assert model.certificate.mechanism == "logistic_descent"
    assert model.coefficients.values == pytest.approx(fitted.coef_[0], abs=2e-5)
    assert model.intercept == pytest.approx(fitted.intercept_[0], abs=2e-3)
    assert model.predict_proba(X) == pytest.approx(fitted.predict_proba(X), abs=1e-3)
    assert model.decision_function(X) == pytest.approx(fitted.decision_function(X), abs=5e-3)
    assert model.standard_errors is not None


def test_log_odds_without_an_intercept() -> None:
    generator = simulation.generator(9)
    a = generator.uniform(-1, 1, 20_000)
    y = (generator.uniform(size=20_000) < 1 / (1 + np.exp(-2 * a))).astype(float)
    schema = Schema(a=(-1, 1), y=(0, 1))
    model = release_model(
        np.column_stack([a, y]), schema, "y", loss="logistic", intercept=False, **PLENTY
    )
    fitted = LogisticRegression(C=1e8, tol=1e-10, fit_intercept=False).fit(a[:, None], y)
    assert model["a"] == pytest.approx(fitted.coef_[0, 0], abs=1e-3)
    assert model.intercept == 0.0


def test_a_huber_line_is_not_moved_by_far_targets() -> None:
    """One target in ten far off, all on one side: least squares follows, Huber's line hardly."""
    generator = simulation.generator(10)
    a = generator.uniform(-1, 1, 20_000)
    y = 2 * a + 0.3 * generator.standard_normal(20_000)
    y[::10] = 9.0
    schema, data = Schema(a=(-1, 1), y=(-10, 10)), np.column_stack([a, y])
    models = {loss: release_model(data, schema, "y", loss=loss, **PLENTY) for loss in MODELS}
    robust = HuberRegressor(epsilon=1.345, alpha=0).fit(a[:, None], y)
    assert models["huber"].loss == "huber"
    assert models["huber"]["a"] == pytest.approx(2.0, abs=0.02)
    assert models["huber"].intercept == pytest.approx(robust.intercept_, abs=0.02)
    assert models["squared"].intercept > models["huber"].intercept + 0.03
    private = release_model(data, schema, "y", loss="huber", **BUDGET)
    assert private["a"] == pytest.approx(2.0, abs=0.3)
    assert private.standard_errors is not None


@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_any_table_has_a_model_of_any_loss(loss: str, neighbours: str) -> None:
    book = Book()
    for rows in (0, 1, 300):
        model = release_model(
            TABLE.slice(0, rows),
            SCHEMA,
            "charges",
            loss=loss,
            neighbours=neighbours,
            ledger=book,
            **BUDGET,
        )
        assert np.isfinite(model.coefficients.values).all()
        assert np.isfinite(model.predict(TABLE)).all()
        assert str(model.summary())
    assert {spent.parameters["loss"] for spent in book.requests} == {loss}


def test_arrays_have_columns_by_position() -> None:
    schema = Schema(a=(-1, 1), junk=(0, 9), b=(-1, 1), y=(-3, 3))
    cells = simulation.generator(2).uniform(-1, 1, (500, 4))
    named = pa.table({name: cells[:, i] for i, name in enumerate(schema.columns)})
    with simulation.door(5):
        expected = release_model(named, schema, "y", ["a", "b"], **BUDGET)
        for data in (cells, np.asfortranarray(cells), sparse.coo_matrix(cells)):
            model = release_model(data, schema, "y", ["a", "b"], **BUDGET)
            assert np.array_equal(model.coefficients.values, expected.coefficients.values)
    assert expected.certificate.simulated


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(("method", "calibration"), WAYS)
@pytest.mark.parametrize(
    ("schema", "options"),
    [
        (SCHEMA, {}),
        (SCHEMA, {"features": "age"}),
        (SCHEMA, {"features": "age", "intercept": False}),
        (SCHEMA, {"guarantee": ZCDP(0.1)}),
        (SCHEMA, {"epsilon": 1e-3, "delta": 1e-9}),
        (Schema({"age": (0, 100), "charges": (0, 9)}, intercept=False), {"intercept": False}),
        (Schema({"age": (0, 100), "charges": (0, 9)}, row_norm=0.5), {}),
    ],
)
def test_any_table_has_a_model(
    schema: Schema, options: dict[str, Any], method: str, calibration: str, neighbours: str
) -> None:
    constant = pa.table({name: [TABLE[name][0].as_py()] * 300 for name in TABLE.column_names})
    hostile = pa.table(
        {
            "charges": [1e308, None, float("nan"), float("inf")],
            "smoker": ["yes", None, "perhaps", ""],
            "bmi": [-1e308, 3.0, None, float("-inf")],
            "age": [1e-320, 50.0, float("nan"), 1e9],
        }
    )
    if "guarantee" in options and calibration == "paper":
        options = {}  # the published constants are for (ε, δ)
    budget = {} if {"guarantee", "epsilon"} & set(options) else BUDGET
    more: dict[str, Any] = budget | options | {"neighbours": neighbours}
    more |= chosen(method, calibration)
    for data in (TABLE.slice(0, 0), TABLE.slice(0, 1), constant, hostile):
        model = gates[calibration](data, schema, "charges", **more)
        assert np.isfinite(model.coefficients.values).all()
        assert np.isfinite(model.intercept)
        assert np.isfinite(model.privacy_errors.values).all()
        assert model.rows == (data.num_rows if neighbours == "replace" else None)
        assert str(model.summary())


def test_bounds_of_a_model_hold_for_every_rounded_row() -> None:
    """Exclusive levels count once, and a missing flag with its column as the schema says."""
    schema = Schema(
        {
            "c": {"type": "category", "levels": ["a", "b", "c"], "drop_first": False},
            "m": {"type": "number", "low": 0, "high": 4, "missing_indicator": True},
            "k": {
                "type": "number", "low": 0, "high": 4, "missing": 4, "missing_indicator": True
            },
            "y": (0, 1),
        },
        derived=["m*c", "m^2"],
    )  # fmt: skip
    generator = simulation.generator(6)
    rows = 4000
    numbers = [0.0, 4.0, None, 2.0, 1e300, -7.0]
    batch = pa.RecordBatch.from_pydict(
        {
            "c": [("a", "b", "c", None, "z")[i] for i in generator.integers(0, 5, rows)],
            "m": [numbers[i] for i in generator.integers(0, 6, rows)],
            "k": [numbers[i] for i in generator.integers(0, 6, rows)],
            "y": generator.uniform(-1, 2, rows),
        }
    )
    cases = [
        (["c"], 2),
        (["m", "m:missing"], 2),
        (["k", "k:missing"], 3),
        (["c=a"], 2),
        (["m*c", "m^2"], 3),
    ]
    for chosen, most in cases:
        for norm in (None, 0.7):
            whole = Schema.from_dict(
                schema.to_dict() | ({} if norm is None else {"row_norm": norm})
            )
            model = OneModel.of(whole, "y", chosen, intercept=True)
            grid, design = Grid.of(model.schema), model.design
            cells = model.schema.encode(batch, scale=float(grid.steps_per_unit))
            integers = round_to_grid(grid, cells, np.zeros((len(cells), 1)))
            squares = (integers[list(design.features)] ** 2).sum(0)
            assert most_squared(model.schema, design.features) == most
            assert squares.max() <= design.feature_square
            if norm is None:
                assert squares.max() > 0.99 * design.feature_square
            assert (integers[design.target] ** 2).max() <= design.target_square


def test_every_release_is_counted() -> None:
    with tally() as spent:
        model = dplinear.release_model(TABLE, SCHEMA, "charges", **BUDGET)
    assert any("no ledger was given" in note for note in model.certificate.notes)
    assert spent.total() == ApproxDP(1.0, 1e-6)
