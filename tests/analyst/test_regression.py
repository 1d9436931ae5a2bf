"""Least squares and ridge from moments: at zero noise, what the rows themselves give."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.analyst.regression.fit import Fit, Fits
from dplinear.analyst.regression.least_squares import solve
from dplinear.analyst.regression.shrinkage import shrunken_coefficients
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.noise import simulation
from dplinear.schema import Schema
from refusals import refused
from services import library

from .tables import (
    COLUMNS,
    DERIVED,
    EVERYTHING,
    SILENT,
    certificate,
    exact,
    least_squares,
    people,
    raw,
)

TABLE = people()
MOMENTS = exact(EVERYTHING, TABLE)
MODELS: list[tuple[str, list[str] | None]] = [
    ("charges", None),
    ("charges", ["age", "bmi", "smoker"]),
    ("bmi", ["age"]),
    ("visit", ["age", "ward"]),
    ("charges", ["visit", "age*smoker", "bmi^2", "age>=65"]),
    ("smoker", ["ward", "charges"]),
    ("age>=65", ["stay", "ward=other"]),
]


def reported(fit: Fit) -> list[float]:
    return [fit.intercept, *fit.coefficients.values.tolist()]


def rows_of(fit: Fit, schema: Schema = EVERYTHING) -> tuple[Any, Any]:
    return raw(schema, TABLE, list(fit.names)), raw(schema, TABLE, [fit.target])[:, 0]


@pytest.mark.parametrize(("target", "features"), MODELS)
@pytest.mark.parametrize("ridge", [0.0, 0.1, 50.0])
def test_with_an_intercept_moments_give_what_the_rows_give(
    target: str, features: list[str] | None, ridge: float
) -> None:
    fit = MOMENTS.regress(target, features, ridge=ridge)
    x, y = rows_of(fit)
    assert reported(fit) == pytest.approx(least_squares(x, y, ridge), rel=1e-8, abs=1e-9)
    assert fit.repair == "none"
    assert fit.positive_definite


@pytest.mark.parametrize(("target", "features"), MODELS)
@pytest.mark.parametrize("ridge", [0.0, 50.0])
def test_without_an_intercept_the_line_passes_through_the_origin_of_the_columns(
    target: str, features: list[str] | None, ridge: float
) -> None:
    fit = MOMENTS.regress(target, features, ridge=ridge, intercept=False)
    x, y = rows_of(fit)
    oracle = least_squares(x, y, ridge, intercept=False)
    assert fit.coefficients.values == pytest.approx(oracle, rel=1e-7, abs=1e-9)
    assert fit.intercept == 0.0
    assert "intercept" not in fit.problem.names


@pytest.mark.oracle
@pytest.mark.parametrize(("target", "features"), MODELS)
@pytest.mark.parametrize("intercept", [True, False])
def test_scikit_learn_agrees(target: str, features: list[str] | None, intercept: bool) -> None:
    linear = library("sklearn.linear_model")
    plain = MOMENTS.regress(target, features, intercept=intercept)
    x, y = rows_of(plain)
    size = np.abs(x).max(0)
    # Scikit-learn drops short columns as dependent, so it gets columns of one size.
    oracle = linear.LinearRegression(fit_intercept=intercept).fit(x / size, y)
    assert plain.coefficients.values == pytest.approx(oracle.coef_ / size, rel=1e-7, abs=1e-9)
    assert plain.intercept == pytest.approx(oracle.intercept_, rel=1e-7, abs=1e-9)
    assert plain.r_squared == pytest.approx(oracle.score(x / size, y), abs=1e-9)
    ridge = MOMENTS.regress(target, features, intercept=intercept, ridge=3.0)
    shrunk = linear.Ridge(alpha=3.0, fit_intercept=intercept, solver="cholesky").fit(x, y)
    assert ridge.coefficients.values == pytest.approx(shrunk.coef_, rel=1e-6, abs=1e-9)


def test_many_targets_are_fitted_as_one_by_one() -> None:
    features = ["age", "ward", "smoker"]
    fits = MOMENTS.regress(["charges", "stay", "visit"], features, ridge=0.5)
    assert isinstance(fits, Fits)
    assert list(fits) == ["charges", "stay", "visit"]
    assert len(fits) == 3
    for target, fit in fits.items():
        alone = MOMENTS.regress(target, features, ridge=0.5)
        assert reported(fit) == pytest.approx(reported(alone), rel=1e-12)
    assert fits.coefficients.shape == (3, len(fits.names))
    predicted = fits.predict(TABLE)
    assert predicted[:, 1] == pytest.approx(fits["stay"].predict(TABLE), rel=1e-12)
    assert "stay" in fits
    assert "age" not in fits
    with refused("target", "fits", hint="did you mean 'charges'"):
        fits["charge"]


def test_features_default_to_all_but_the_groups_of_the_targets() -> None:
    assert MOMENTS.regress("ward=b").names == tuple(
        name for name in EVERYTHING.names[1:] if not name.startswith("ward=")
    )
    both = MOMENTS.regress(["ward=b", "stay"])
    assert "ward=c" not in both.names
    assert "stay" not in both.names


def test_a_category_stands_for_its_levels_and_a_term_for_its_features() -> None:
    fit = MOMENTS.regress("charges", ["ward", "age*smoker", "age"])
    assert fit.names == ("ward=b", "ward=c", "ward=other", "age*smoker=yes", "age")
    assert MOMENTS.regress("charges", "ward").names == ("ward=b", "ward=c", "ward=other")
    assert MOMENTS.regress("smoker", ["age"]).target == "smoker=yes"


def test_coefficients_are_read_by_name() -> None:
    fit = MOMENTS.regress("charges", ["age", "smoker"])
    assert fit["age"] == fit.coefficients["age"] == fit.coefficients.values[0]
    assert fit["intercept"] == fit.intercept
    assert fit.coefficients.to_dict()["smoker=yes"] == fit["smoker=yes"]
    with refused("name", "a fit", hint="did you mean 'smoker=yes'"):
        fit["smoker"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "charge"}, "did you mean 'charges'"),
        ({"target": 3}, "'target' parameter of regress must be the name of a feature"),
        ({"target": []}, "must be a list of different features"),
        ({"target": ["charges", "charges"]}, "must be a list of different features"),
        ({"target": "ward"}, "choose among 'ward=b', 'ward=c', 'ward=other'"),
        ({"target": "intercept"}, "other than the intercept"),
        ({"features": ["agee"]}, "did you mean 'age'"),
        ({"features": ["zzz"]}, "the names are 'age'"),
        ({"features": ["age", "intercept"]}, "unless intercept=False"),
        ({"features": ["age", "age"]}, "free of features named twice"),
        ({"features": ["ward", "ward=b"]}, "Got 'ward=b'"),
        ({"features": ["age", "charges"]}, "must be free of the target. Got 'charges'"),
        ({"features": []}, "at least one feature"),
        ({"features": 7}, "or a list of them. Got 7"),
        ({"features": [1, 2]}, "or a list of them. Got"),
        ({"ridge": -1}, "'ridge' parameter of regress must be a finite number of at least 0"),
        ({"ridge": "1"}, "'ridge' parameter"),
        ({"l1": float("nan")}, "'l1' parameter"),
        ({"intercept": 1}, "must be True or False"),
        ({"repair": "glue"}, "'repair' parameter of regress must be one of 'auto'"),
    ],
)
def test_bad_arguments_get_the_one_sentence(arguments: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"target": "charges", "features": ["age"]} | arguments
    with pytest.raises((ValueError, TypeError), match=message):
        MOMENTS.regress(**call)


def test_a_schema_of_one_column_has_nothing_to_explain_it() -> None:
    schema = Schema(age=(0, 100))
    with refused("target", "regress", "leaves features to explain it"):
        exact(schema, TABLE).regress("age")


def test_a_schema_without_an_intercept_fits_through_the_origin_only() -> None:
    schema = Schema(COLUMNS, derived=DERIVED, intercept=False)
    moments = exact(schema, TABLE)
    with refused("intercept", "regress", hint="pass intercept=False"):
        moments.regress("charges")
    fit = moments.regress("charges", ["age", "bmi", "ward"], intercept=False)
    oracle = least_squares(*rows_of(fit, schema), intercept=False)
    assert fit.coefficients.values == pytest.approx(oracle, rel=1e-8)
    assert fit.count is None
    assert fit.residual_variance is None
    y = rows_of(fit, schema)[1]
    left = y - rows_of(fit, schema)[0] @ oracle
    assert fit.r_squared == pytest.approx(1 - left @ left / (y @ y), abs=1e-9)
    with refused("l1", "regress", "0 where the number of rows is unknown"):
        moments.regress("charges", ["age"], intercept=False, l1=1.0)
    public = exact(schema, TABLE, rows=400).regress("charges", ["age"], intercept=False, l1=1.0)
    assert public.count == 400


def test_a_column_called_intercept_is_a_column() -> None:
    schema = Schema({"intercept": (0, 10), "y": (0, 10)}, intercept=False)
    table = pa.table({"intercept": [1.0, 2.0, 3.0], "y": [2.0, 4.0, 6.0]})
    fit = exact(schema, table).regress("y", intercept=False)
    assert fit.coefficients.to_dict() == pytest.approx({"intercept": 2.0})
    assert fit.intercept == 0.0
    assert fit["intercept"] == pytest.approx(2.0)


bound = st.floats(0.5, 200)


@settings(deadline=None, max_examples=40)
@given(below=st.tuples(bound, bound, bound), above=st.tuples(bound, bound, bound), ridge=bound)
def test_bounds_change_no_coefficient(
    below: tuple[float, ...], above: tuple[float, ...], ridge: float
) -> None:
    table = TABLE.select(["age", "bmi", "stay"]).drop_columns(["bmi"])
    ends = zip(("age", "stay"), (18.0, -5.0), (95.0, 90.0), below, above, strict=False)
    schema = Schema({name: (lo - down, hi + up) for name, lo, hi, down, up in ends})
    x, y = raw(EVERYTHING, TABLE, ["age"]), raw(EVERYTHING, TABLE, ["stay"])[:, 0]
    moments = exact(schema, table)
    for alpha in (0.0, ridge):
        fit = moments.regress("stay", ridge=alpha)
        assert reported(fit) == pytest.approx(least_squares(x, y, alpha), rel=1e-7)
        origin = moments.regress("stay", ridge=alpha, intercept=False)
        oracle = least_squares(x, y, alpha, intercept=False)
        assert origin.coefficients.values == pytest.approx(oracle, rel=1e-7)


def test_quality_is_that_of_the_rows() -> None:
    fit = MOMENTS.regress("charges", ["age", "bmi", "smoker"])
    x, y = rows_of(fit)
    left = y - fit.predict(x)
    assert fit.r_squared == pytest.approx(1 - left @ left / ((y - y.mean()) ** 2).sum(), abs=1e-9)
    assert fit.residual_variance == pytest.approx(left @ left / (400 - 4), rel=1e-7)
    assert fit.count == pytest.approx(400)


def test_a_perfect_fit_has_no_residual() -> None:
    table = pa.table({"x": [0.0, 1.0, 2.0, 5.0], "y": [1.0, 3.0, 5.0, 11.0]})
    fit = exact(Schema(x=(0, 5), y=(0, 20)), table).regress("y")
    assert reported(fit) == pytest.approx([1.0, 2.0])
    assert fit.r_squared == pytest.approx(1.0)
    assert fit.residual_variance == pytest.approx(0.0, abs=1e-9)
    # A residual below zero by no more than rounding is none.
    values = np.array([[4.0, 0, 0], [0, 4.0, 4.0], [0, 4.0, 4.0 - 1e-12]])
    moments = MomentsRelease(Schema(x=(-1, 1), y=(-1, 1)), values, SILENT, certificate())
    assert moments.regress("y", repair="none").r_squared == 1.0


def test_quality_is_left_out_where_noise_makes_it_meaningless() -> None:
    values = np.array([[4.0, 0, 0], [0, 4.0, 3.0], [0, 3.0, 1.0]])
    schema = Schema(x=(-1, 1), y=(-1, 1))
    moments = MomentsRelease(schema, values, SymmetricGaussian(1, 1), certificate())
    fit = moments.regress("y", repair="none")
    assert fit["x"] == pytest.approx(0.75)
    assert fit.r_squared is None
    assert fit.residual_variance is None
    assert "R²" not in repr(fit)


@pytest.mark.parametrize("repair", ["auto", "none", "released", "scaled", "clipped", "floor"])
@pytest.mark.parametrize(
    "law",
    [
        SymmetricGaussian(1e6, 5e5),
        WishartNoise(40, 30.0),
        SketchNoise(20, 100.0),
        InverseWishartNoise(30, 100.0),
    ],
)
def test_noise_that_swamps_the_table_never_raises(repair: str, law: Any) -> None:
    drawn = law.draw(MOMENTS.values, simulation.generator(3))
    noisy = replace(MOMENTS, values=drawn, noise_model=law)
    for ridge in (0.0, 10.0):
        fit = noisy.regress("charges", ridge=ridge, repair=repair)
        assert np.isfinite(reported(fit)).all()
        assert repr(fit)
        assert fit.repair in {"none", "released", "scaled", "clipped", "floor", "shrunk"}


def test_an_indefinite_matrix_is_solved_as_it_is() -> None:
    matrix = np.array([[2.0, 5.0, 1.0], [5.0, 3.0, 0.0], [1.0, 0.0, -4.0]])
    right = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 5.0]])
    found = solve(matrix, right)
    assert not found.positive_definite
    assert matrix @ found.coefficients == pytest.approx(right)
    moments = MomentsRelease(
        Schema(x=(-1, 1), y=(-1, 1)),
        np.array([[2.0, 5.0, 1.0], [5.0, 3.0, 2.0], [1.0, 2.0, 9.0]]),
        SymmetricGaussian(1, 1),
        certificate(),
    )
    fit = moments.regress("y", repair="none")
    assert not fit.positive_definite
    assert reported(fit) == pytest.approx(np.linalg.solve(moments.values[:2, :2], [1, 2]))


def test_dependent_features_share_their_effect() -> None:
    matrix = np.array([[4.0, 8.0], [8.0, 16.0]])
    found = solve(matrix, np.array([[2.0], [4.0]]))
    assert not found.positive_definite
    assert matrix @ found.coefficients == pytest.approx(np.array([[2.0], [4.0]]))
    assert found.coefficients[:, 0] == pytest.approx([0.25, 0.125])
    zero = solve(np.array([[4.0, 0.0], [0.0, 0.0]]), np.array([[2.0], [0.0]]))
    assert zero.coefficients[:, 0] == pytest.approx([0.5, 0.0])
    rounded = np.array([[1.0, 1 - 2**-53], [1 - 2**-53, 1.0]])  # has a Cholesky factor, barely
    nearly = solve(rounded, np.array([[1.0], [1.1]]))
    assert not nearly.positive_definite
    assert nearly.coefficients[:, 0] == pytest.approx([0.525, 0.525])
    assert solve(np.zeros((2, 2)), np.ones((2, 1))).coefficients.tolist() == [[0.0], [0.0]]


def test_units_decide_nothing() -> None:
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    scale = np.diag([1e-9, 1e7])
    found = solve(scale @ matrix @ scale, scale @ np.array([[1.0], [4.0]]))
    assert found.positive_definite
    assert (scale @ found.coefficients)[:, 0] == pytest.approx(np.linalg.solve(matrix, [1, 4]))


def test_clipped_rows_weigh_less() -> None:
    schema = Schema({"age": (0, 100), "stay": (-5, 90)}, row_norm=1.2)
    moments = exact(schema, TABLE)
    inner = raw(Schema({"age": (0, 100), "stay": (-5, 90)}), TABLE, ["age", "stay"])
    from_cells = np.column_stack([np.ones(400), (inner - [50, 42.5]) / [50, 47.5]])
    weight = np.minimum(1, 1.2 / np.linalg.norm(from_cells, axis=1))
    values = (from_cells * weight[:, None]).T @ (from_cells * weight[:, None])
    moments = replace(moments, values=values)
    fit = moments.regress("stay")
    root = np.column_stack([np.ones(400), inner[:, 0]]) * weight[:, None]
    oracle = np.linalg.lstsq(root, inner[:, 1] * weight, rcond=None)[0]
    assert reported(fit) == pytest.approx(oracle)
    assert fit.count is None
    assert fit.problem.count == pytest.approx((weight**2).sum())
    assert moments.mean()["age"] == pytest.approx(np.average(inner[:, 0], weights=weight**2))


def test_the_problem_describes_what_was_solved() -> None:
    fit = MOMENTS.regress("charges", ["age", "smoker"], ridge=2.0)
    problem = fit.problem
    gram = problem.gram
    b = np.linalg.solve(gram[:-1, :-1] + np.diag(problem.penalty), gram[:-1, -1])
    assert problem.offset + problem.readout @ b == pytest.approx(reported(fit))
    assert problem.names == ("intercept", "age", "smoker=yes")
    assert problem.target == "charges"
    assert problem.penalty[0] == 0
    assert problem.count == pytest.approx(400)


def test_a_repaired_fit_keeps_the_unbiased_problem() -> None:
    law = SymmetricGaussian(1e4, 5e3)
    noisy = replace(
        MOMENTS, values=law.draw(MOMENTS.values, simulation.generator(3)), noise_model=law
    )
    fit = noisy.regress("charges", ["age", "bmi", "visit"], repair="clipped")
    places = [EVERYTHING.names.index(name) for name in (*fit.problem.names, "charges")]
    assert (fit.unrepaired.whole == noisy.values[np.ix_(places, places)]).all()
    assert not (fit.problem.whole == fit.unrepaired.whole).all()
    assert fit.unrepaired.names == fit.problem.names


def test_a_fit_prints_its_coefficients() -> None:
    text = repr(MOMENTS.regress("charges", ["age", "smoker"]))
    assert text.startswith("Fit of charges, about 400 rows, R² about 0.")
    assert "smoker=yes" in text


def test_levels_that_no_row_holds_spoil_nothing() -> None:
    columns = COLUMNS | {"smoker": ["no", "yes"]}  # has a level "smoker=other", which is empty
    moments = exact(Schema(columns), TABLE)
    law = SymmetricGaussian(16.0, 8.0)
    noisy = replace(
        moments, values=law.draw(moments.values, simulation.generator(8)), noise_model=law
    )
    for some in (moments, noisy):
        fit = some.regress("charges", ["age", "smoker", "bmi"])
        assert fit.names == ("age", "smoker=yes", "smoker=other", "bmi")
        assert fit.empty == ("smoker=other",)
        assert fit["smoker=other"] == 0.0
        assert fit.problem.names == ("intercept", "age", "smoker=yes", "bmi")
        assert repr(fit).endswith("too few rows to tell from none: smoker=other")
        without = some.regress("charges", ["age", "smoker=yes", "bmi"])
        assert without.empty == ()
        assert fit["age"] == pytest.approx(without["age"])
        assert fit["smoker=yes"] == pytest.approx(without["smoker=yes"])
        assert fit.r_squared == pytest.approx(without.r_squared)
        row = {"age": [40.0], "smoker": ["cigars"], "bmi": [30.0]}
        assert fit.predict(row) == pytest.approx(fit.predict([[40.0, 0, 1, 30.0]]))
    alone = moments.regress("charges", ["smoker=other"])
    assert alone.empty == ()
    assert alone["smoker=other"] == 0.0


def test_a_level_that_stands_out_from_the_noise_is_kept() -> None:
    values = np.diag([100.0, 50.0, 12.1, 40.0])
    schema = Schema({"c": {"type": "category", "levels": ["p", "q"]}, "y": (-1, 1)})
    assert schema.names == ("intercept", "c=q", "c=other", "y")
    for deviation, empty in ((4.0, ()), (4.1, ("c=other",))):
        law = SymmetricGaussian(deviation**2, deviation**2 / 2)
        fit = MomentsRelease(schema, values, law, certificate()).regress("y")
        assert fit.empty == empty


def test_a_problem_has_the_law_of_its_block() -> None:
    law = InverseWishartNoise(60, 10.0)
    drawn = law.draw(MOMENTS.values, simulation.generator(3))
    problem = (
        replace(MOMENTS, values=drawn, noise_model=law).regress("stay", ["age", "bmi"]).problem
    )
    assert problem.whole.shape == (4, 4)
    assert problem.noise_model == InverseWishartNoise(60 - 9, 10.0)


def test_levels_are_kept_where_the_noise_has_no_variance_to_judge_by() -> None:
    law = InverseWishartNoise(15.5, 1e3)
    drawn = law.draw(MOMENTS.values, simulation.generator(3))
    assert replace(MOMENTS, values=drawn, noise_model=law).regress("charges").empty == ()


def test_only_indicators_are_taken_for_empty() -> None:
    values = np.diag([100.0, 50.0, 1.0, 40.0])
    law = SymmetricGaussian(4.0, 2.0)
    schema = Schema({"a": (-1, 1), "b": (-1, 1), "y": (-1, 1)})
    assert MomentsRelease(schema, values, law, certificate()).regress("y").empty == ()


def test_a_target_that_is_explained_well_needs_no_repair() -> None:
    values = np.array([[100.0, 0, 0], [0, 60.0, 60.0], [0, 60.0, 59.0]])
    law = SymmetricGaussian(4.0, 2.0)
    moments = MomentsRelease(Schema(x=(-1, 1), y=(-1, 1)), values, law, certificate())
    fit = moments.regress("y")
    assert fit.repair == "none"
    assert fit["x"] == pytest.approx(1.0)
    assert moments.regress("y", repair="scaled")["x"] < 0.95


def simple(matrix: list[list[float]], sigma: float) -> MomentsRelease:
    law = SymmetricGaussian(sigma**2, sigma**2 / 2)
    schema = Schema({"x": (-1, 1), "z": (-1, 1), "y": (-1, 1)}, intercept=False)
    return MomentsRelease(schema, np.array(matrix), law, certificate(), rows=1000)


def test_auto_repairs_only_what_intervals_cannot_be_put_on() -> None:
    clear = [[300.0, 10.0, 200.0], [10.0, 250.0, 50.0], [200.0, 50.0, 150.0]]
    fit = simple(clear, 1.0).regress("y", intercept=False)
    assert fit.repair == "none"
    # A target that the features explain is no reason: only they are divided by.
    exact = [[300.0, 0.0, 300.0], [0.0, 250.0, 0.0], [300.0, 0.0, 299.0]]
    assert simple(exact, 1.0).regress("y", intercept=False).repair == "none"
    hidden = [[300.0, 10.0, 200.0], [10.0, 2.0, 5.0], [200.0, 5.0, 150.0]]
    assert simple(hidden, 1.0).regress("y", intercept=False).repair == "shrunk"
    assert simple(hidden, 1.0).regress("y", ["x"], intercept=False).repair == "none"


def test_shrunk_coefficients_are_those_of_the_filter() -> None:
    hidden = [[300.0, 10.0, 200.0], [10.0, 2.0, 5.0], [200.0, 5.0, 150.0]]
    fit = simple(hidden, 3.0).regress("y", intercept=False)
    assert reported(fit)[-2:] == pytest.approx(
        shrunken_coefficients(np.array(hidden), 3.0, 2)[:, 0]
    )
    ridge = simple(hidden, 3.0).regress("y", intercept=False, ridge=1.0)
    assert ridge.repair == "shrunk"
    assert reported(ridge) != pytest.approx(reported(fit))


def test_a_shrunk_fit_has_the_intervals_of_the_moments_before_it() -> None:
    # Noise of spread 2√(2·50) = 20 is more than half of 30, and less than 0.65 of it.
    moments = simple([[300.0, 0.0, 200.0], [0.0, 35.0, 20.0], [200.0, 20.0, 180.0]], 10.0)
    fit = moments.regress("y", intercept=False)
    assert fit.repair == "shrunk"
    plain = moments.regress("y", intercept=False, repair="none")
    assert plain.intervals().swamped is None
    assert (fit.intervals().low == plain.intervals().low).all()
    assert (fit.intervals().high == plain.intervals().high).all()
    assert "Estimates are shrunk" in str(fit.summary())
    ridged = moments.regress("y", intercept=False, repair="none", ridge=5.0)
    assert "coefficients that the ridge shrinks" in str(ridged.summary())
    assert moments.regress("y", intercept=False, repair="clipped").intervals().swamped
