"""Formulas: what statsmodels prints for them at a practically infinite budget, and what is refused.

Tables are made up; the budget is so large that the grid's rounding is all that is left of privacy.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear.analyst.regression.formulas import read_formula
from dplinear.noise import simulation
from refusals import refused

pytestmark = pytest.mark.engine
pd = pytest.importorskip("pandas")
smf = pytest.importorskip("statsmodels.formula.api")
pytest.importorskip("formulaic")

ROWS = 3_000
COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "low": 18, "high": 90},
    "bmi": (15, 45),
    "smoker": ["no", "yes"],
    "ward": {"type": "category", "levels": [1, 2, 3]},
    "well": "boolean",
    "charges": (1, 60_000),
}
DERIVED = [
    *("age*smoker", "bmi*smoker", "age^2", "age*bmi", "smoker*ward", "age>=65"),
    *("log(charges)", "log(bmi)", "sqrt(age)", "bins(age, 30, 50)", "spline(bmi, 4)"),
    *("log(bmi)*smoker", "bins(age, 30, 50)*smoker"),
]
SCHEMA = dpl.Schema(COLUMNS, derived=DERIVED)
ENDLESS: dict[str, Any] = {"epsilon": 1e14, "delta": 1e-6, "mechanism": "analyze_gauss"}


@cache
def table() -> Any:
    random = simulation.generator(31)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 91, ROWS),
            "bmi": random.uniform(15, 45, ROWS),
            "smoker": pd.Categorical(random.choice(["no", "yes"], ROWS)),
            "ward": random.integers(1, 4, ROWS),
            "well": random.integers(0, 2, ROWS),
        }
    )
    line = 7 + 0.01 * frame.age + 0.5 * (frame.smoker == "yes") + 0.1 * frame.ward
    noise = random.normal(0, 200, ROWS)
    return frame.assign(charges=(np.exp(line) + 50 * frame.bmi + noise).clip(1, 60_000))


@cache
def moments() -> Any:
    return dpl.release_moments(table(), SCHEMA, **ENDLESS)


def numbers(fit: Any) -> list[float]:
    return list(fit.coefficients.to_dict().values())


def near(found: Any, want: Any, scale: Any) -> bool:
    return bool((np.abs(np.subtract(found, want)) <= 1e-4 * np.asarray(scale)).all())


FORMULAS = [
    "charges ~ age + bmi + C(smoker)",
    "charges ~ age * smoker",
    "charges ~ C(smoker) + C(ward) + well",
    "charges ~ C(smoker) * C(ward)",
    "charges ~ C(smoker, Treatment('yes')) * bmi",
    "charges ~ C(ward, Treatment(reference=2)) + C(smoker, Sum)",
    "charges ~ C(smoker):bmi",
    "charges ~ C(ward) + bmi - 1",
    "charges ~ 0 + age + bmi",
    "charges ~ bmi:smoker + bmi",
    "charges ~ (age + bmi)**2",
    "charges ~ I(age - 40) + I(bmi / 10)",
    "charges ~ age + I(age**2)",
    "charges ~ I(age * bmi)",
    "charges ~ I(age >= 65)",
    "charges ~ C(well)",
    "np.log(charges) ~ age + np.log(bmi) * smoker",
    "np.log(charges) ~ np.sqrt(age) + np.log10(bmi)",
    "charges ~ np.square(age)",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_says_what_statsmodels_says(text: str) -> None:
    fit, want = (
        moments().regress(text),
        smf.ols(text.replace("I(age >= 65)", "OLD"), _frame()).fit(),
    )
    names = [name.replace("I(age >= 65)", "OLD") for name in fit.problem.names]
    assert len(names) == len(want.params)
    found = fit.intervals()
    # The same names; statsmodels may have other orders of columns, and of factors in a product.
    ours = {frozenset(name.split(":")): place for place, name in enumerate(names)}
    order = [ours[frozenset(name.split(":"))] for name in want.params.index]
    size = np.abs(want.params) + want.bse
    assert near(found.estimates[order], want.params, size)
    assert near(found.standard_errors[order], want.bse, want.bse)
    ends = want.conf_int()
    assert near(found.low[order], ends[0], size)
    assert near(found.high[order], ends[1], size)
    predicted = want.predict(_frame().head(50))
    assert near(fit.predict(table().head(50)), predicted, np.abs(predicted))
    centred = 1 - want.ssr / want.centered_tss  # without an intercept, statsmodels' is another
    assert fit.r_squared == pytest.approx(centred, abs=1e-5)


@pytest.mark.parametrize("coding", ["Diff", "Poly", "Helmert"])
def test_other_codings_predict_the_same(coding: str) -> None:
    """Their columns have other names in statsmodels."""
    text = f"charges ~ C(ward, {coding}) * C(smoker)"
    want = smf.ols(text, table()).fit()
    fit = moments().regress(text)
    assert near(fit.predict(table()), want.fittedvalues, np.abs(want.fittedvalues))
    assert near(sorted(numbers(fit)), sorted(want.params.iloc[1:]), want.bse.max())


@cache
def _frame() -> Any:
    return table().assign(OLD=(table().age >= 65).astype(float))


def test_bins_and_splines_of_a_formula_are_the_schemas() -> None:
    fit = moments().regress("charges ~ bins(age, 30, 50) * C(smoker)")
    assert fit.names == (
        *("bins(age, 30, 50)[30, 50)", "bins(age, 30, 50)[50, 90]", "C(smoker)[T.yes]"),
        "bins(age, 30, 50)[30, 50):C(smoker)[T.yes]",
        "bins(age, 30, 50)[50, 90]:C(smoker)[T.yes]",
    )
    cut = table().assign(band=pd.cut(table().age, [0, 30, 50, 91], right=False))
    want = smf.ols("charges ~ C(band) * C(smoker)", cut).fit()
    assert near(fit.predict(table()), want.fittedvalues, np.abs(want.fittedvalues))
    spline = moments().regress("charges ~ spline(bmi, 4)")
    assert spline.names == tuple(f"spline(bmi, 4)[{index}]" for index in (1, 2, 3, 4))
    by_name = moments().regress("charges", "spline(bmi, 4)")
    assert spline.predict(table()) == pytest.approx(by_name.predict(table()), rel=1e-5)


def test_a_formula_of_the_schemas_own_features_is_their_fit() -> None:
    by_name = moments().regress("charges", ["bmi", "smoker=yes", "bmi*smoker=yes"])
    fit = moments().regress("charges ~ bmi * C(smoker)")
    assert numbers(fit) == pytest.approx(numbers(by_name))
    assert fit.features == ("bmi", "smoker=yes", "bmi*smoker=yes")
    assert fit["Intercept"] == fit["intercept"] == fit.intercept == pytest.approx(by_name.intercept)
    assert fit["C(smoker)[T.yes]"] == pytest.approx(by_name["smoker=yes"])
    assert "C(smoker)[T.yes]" in str(fit.summary())
    ridge = moments().regress("charges ~ bmi * C(smoker)", ridge=10.0)
    shrunk = moments().regress("charges", list(by_name.names), ridge=10.0)
    assert numbers(ridge) == pytest.approx(numbers(shrunk))


def test_features_can_be_named_between_backticks() -> None:
    fit = moments().regress("`smoker=yes` ~ `age^2` + `age>=65`")
    by_name = moments().regress("smoker=yes", ["age^2", "age>=65"])
    assert fit.target == "smoker=yes"
    assert fit.coefficients.to_dict() == pytest.approx(by_name.coefficients.to_dict())


def test_arrays_of_the_formulas_columns_are_taken_as_they_are() -> None:
    fit = moments().regress("charges ~ C(smoker, Treatment('yes')) + bmi")
    found = fit.predict([[1.0, 20.0], [0.0, 30.0]])
    no, bmi = numbers(fit)
    assert found.tolist() == pytest.approx(
        [fit.intercept + no + 20 * bmi, fit.intercept + 30 * bmi]
    )


def test_levels_that_no_row_holds_are_none_of_the_formulas() -> None:
    """A table has a column for each level that it holds: "other" is none of them here."""
    fit = moments().regress("charges ~ C(smoker, Sum) + C(ward, Sum)")
    assert fit.names == ("C(smoker, Sum)[S.no]", "C(ward, Sum)[S.1]", "C(ward, Sum)[S.2]")
    assert fit.empty == ("smoker=other", "ward=other")


def test_other_releases_take_formulas_too() -> None:
    text = "charges ~ C(smoker, Treatment('yes')) + bmi"
    rows = table()[["charges", "smoker", "bmi"]]
    schema = dpl.Schema({name: COLUMNS[name] for name in rows})
    weighted = dpl.Schema({name: COLUMNS[name] for name in rows}, weight=("weight", 0, 3))
    heavy = rows.assign(weight=1.0 + table().age % 3)
    release = dpl.release_moments(heavy, weighted, **ENDLESS)
    fit, plain = release.regress(text), release.regress("charges", ["smoker=yes", "bmi"])
    assert fit.names == ("C(smoker, Treatment('yes'))[T.no]", "bmi")
    assert numbers(fit)[0] == pytest.approx(-plain["smoker=yes"], rel=1e-3)
    assert fit.count == plain.count
    sketch = dpl.release_sketch(rows, schema, epsilon=50.0, delta=1e-3)
    assert sketch.regress("charges ~ bmi")["bmi"] == sketch.regress("charges", ["bmi"])["bmi"]


REFUSED = [
    ("charges ~ log(age)", "of what was released", 'derived=["log(age)"]'),
    ("charges ~ bmi:ward", "of what was released", 'derived=["bmi*ward"]'),
    ("charges ~ I(bmi**2)", "a coefficient for each feature", 'derived=["bmi^2"]'),
    ("charges ~ I(age > 65)", "of what was released", 'derived=["age>65"]'),
    ("charges ~ I(age >= 64.5) + I(bmi > 30)", "of what was released", 'derived=["bmi>30"]'),
    ("charges ~ bins(age, 30)", "a coefficient for each feature", 'derived=["bins(age, 30)"]'),
    (
        "charges ~ spline(bmi, [20, 30])",
        "of what was released",
        'derived=["spline(bmi, [20, 30])"]',
    ),
    ("charges ~ sqrt(bmi)*smoker", "of what was released", 'derived=["sqrt(bmi)"]'),
    ("charges ~ log(well)", "of what was released", "log1p(well)"),
    ("log(age) ~ bmi", "of a target that was released", 'derived=["log(age)"]'),
    ("smoker ~ age", "of a target that was released", "`smoker=yes`"),
    ("I(2 * charges) ~ age", "of one feature as target", ""),
    ("charges ~ center(age)", "of declared columns", "center()"),
    ("charges ~ bs(age, df=4)", "of declared columns", "spline"),
    ("charges ~ exp(age)", "of declared columns", ""),
    ("charges ~ np.exp(age)", "of declared columns", ""),
    ("charges ~ I(age + 60 > 70)", "of declared columns", ""),
    ("charges ~ agee", "of declared columns", "'age'"),
    ("charges ~ C(age)", "C() is of a category", "bins(age"),
    ("charges ~ log(smoker)", "functions are of numbers", ""),
    ("charges ~ I(age + bmi)", "a coefficient for each feature", "age, bmi"),
    ("charges ~ 0 + I(age - 40)", "a coefficient for each feature", ""),
    ("charges ~ age + I(2 * age)", "independent columns", ""),
    ("charges ~ 1", "at least one feature", "means()"),
    ("charges + age ~ bmi", "of one target", ""),
    ("charges ~ .", "of one target", ""),
    ("charges ~ age | bmi", "of one target", ""),
    ("~ age", "of one target", ""),
    ("charges ~", "at least one feature", ""),
    ("charges ~ age +", "of one target", ""),
    ("charges ~ age ~ bmi", "of one target", ""),
    ("charges ~ I(age / 0)", "released", ""),
    ("charges ~ I('a' * 999999999)", "of declared columns", ""),
    ("charges ~ I(age ** 9 ** 9 ** 9)", "of declared columns", ""),
]


@pytest.mark.parametrize(("text", "rule", "hint"), REFUSED)
def test_what_moments_do_not_hold_is_refused_with_what_to_declare(
    text: str, rule: str, hint: str
) -> None:
    with refused("target", "regress", rule) as caught:
        moments().regress(text)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "factor",
    [
        "np.savetxt('{}', age)",
        "{{np.savetxt('{}', age)}}",
        "I(np.savetxt('{}', age))",
        "I([np.savetxt('{}', x) for x in [age]])",
        "I((lambda: np.savetxt('{}', age))())",
        "I(age.to_csv('{}'))",
        "I(age.__class__)",
        "I(getattr(age, 'sum')())",
        "I(age[0])",
        "I(age if age else age)",
        "np.load('{}')",
        "Q('age')",
        "hashed(age, levels=3)",
    ],
)
def test_nothing_but_listed_words_is_evaluated(factor: str, tmp_path: Path) -> None:
    path = tmp_path / "written"
    with refused("target", "regress", "of declared columns"):
        moments().regress(f"charges ~ {factor.format(path)}")
    assert not path.exists()


def test_what_else_is_said_beside_a_formula_is_refused() -> None:
    with refused("features", "regress", "None beside a formula"):
        moments().regress("charges ~ age", ["bmi"])
    with refused("intercept", "regress", "left out"):
        moments().regress("charges ~ age", intercept=False)
    with refused("ridge", "regress", "another way than the schema"):
        moments().regress("charges ~ C(smoker, Sum)", ridge=1.0)
    bare = dpl.Schema(COLUMNS, intercept=False)
    with refused("target", "regress", "without an intercept"):
        dpl.release_moments(table(), bare, **ENDLESS).regress("charges ~ age")


def test_a_target_with_a_tilde_in_its_name_is_that_target() -> None:
    rows = pd.DataFrame({"y ~ x": [1.0, 2.0, 3.0] * 50, "x": [1.0, 2.0, 3.5] * 50})
    schema = dpl.Schema({"y ~ x": (0, 9), "x": (0, 9)})
    fit = dpl.release_moments(rows, schema, **ENDLESS).regress("y ~ x", ["x"])
    assert fit.target == "y ~ x"


def test_without_the_library_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match=r"pip install formulaic"):
        moments().regress("charges ~ age")


def test_combinations_of_columns_are_those_that_were_written() -> None:
    """L itself, where it is known by hand."""
    formula = read_formula(SCHEMA, "charges ~ C(smoker, Treatment('yes')) + I(bmi / 4 - 5)", "test")
    assert formula.names == (
        "Intercept",
        "C(smoker, Treatment('yes'))[T.no]",
        "C(smoker, Treatment('yes'))[T.other]",
        "I(bmi / 4 - 5)",
    )
    assert formula.features == ("bmi", "smoker=yes", "smoker=other")
    want = [[1, 1, 0, -5], [0, 0, 0, 0.25], [0, -1, 0, 0], [0, -1, 1, 0]]
    assert formula.combination == pytest.approx(np.array(want), abs=1e-12)
    assert not formula.is_plain


@pytest.mark.parametrize("constant", [True, False])
def test_a_model_is_released_by_formula_as_by_names(*, constant: bool) -> None:
    text = "log(charges) ~ bmi + C(smoker) + age" + ("" if constant else " - 1")
    given: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6}
    if not constant:
        text = text.replace("C(smoker)", "well")
    with simulation.door(3):
        found = dpl.release_model(table(), SCHEMA, text, **given)
    names = ["bmi", *(["smoker"] if constant else ["well"]), "age"]
    with simulation.door(3):
        want = dpl.release_model(
            table(), SCHEMA, "log(charges)", names, intercept=constant, **given
        )
    assert found.target == "log(charges)"
    assert found.names == want.names
    assert numbers(found) == numbers(want)
    assert found.intercept == want.intercept


def test_a_model_in_another_coding_is_refused_before_anything_is_spent() -> None:
    given: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6}
    with refused("target", "release_model", "the schema's own features"):
        dpl.release_model("nowhere.csv", SCHEMA, "charges ~ C(smoker, Sum)", **given)
    with refused("target", "release_model", "of what was released"):
        dpl.release_model("nowhere.csv", SCHEMA, "charges ~ log(age)", **given)
    with refused("features", "release_model", "None beside a formula"):
        dpl.release_model("nowhere.csv", SCHEMA, "charges ~ age", ["bmi"], **given)
    with refused("intercept", "release_model", "left out"):
        dpl.release_model("nowhere.csv", SCHEMA, "charges ~ age", intercept=False, **given)


@pytest.mark.parametrize(
    "formula",
    [
        "charges ~ bins(age - 30, 30, 50)",
        "charges ~ bins(age * 2, 30)",
        "charges ~ spline(-age, 4)",
        "charges ~ spline(log(bmi), [3])",
        "charges ~ sqrt(bmi, age)",
        "charges ~ np.sqrt(bmi, out=age)",
        "charges ~ I(age > -True)",
        f"charges ~ I(age > {'9' * 400})",
        "charges ~ C(smoker, Treatment)",
        "charges ~ C(smoker, levels=['no'])",
        "charges ~ 0",
        "charges ~ I(((9**16)**16)*age)",
    ],
)
def test_what_would_mean_another_column_or_nothing_is_refused(formula: str) -> None:
    with refused("target", "regress"):
        moments().regress(formula)


@pytest.mark.parametrize(
    "formula",
    [
        "charges ~ age**1000000",
        "charges ~ (age + bmi)^10000000",
        f"charges ~ {'*'.join(f'I(age+{n})' for n in range(16))}",
        f"charges ~ {' + '.join(f'I(age*{n})' for n in range(10_000))}",
        f"charges ~ {'*'.join(['(age + bmi + smoker)'] * 12)}",
        f"charges ~ {'/'.join(['age'] * 40)}",
    ],
)
def test_formulas_that_would_take_for_ever_are_refused_before_they_are_read(formula: str) -> None:
    with refused("target", "regress", "terms"):
        moments().regress(formula)
