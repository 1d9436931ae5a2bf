"""Scores of models on private rows: what scikit-learn says, with noise and intervals."""

import math
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import dplinear as dpl
from dplinear.analyst.releases.model import ModelRelease
from dplinear.analyst.results import NamedVector
from dplinear.arguments import ArgumentError
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours

pytestmark = pytest.mark.engine
pd = pytest.importorskip("pandas")

SCHEMA = dpl.Schema({"a": (0, 10), "b": (-5, 5), "y": (0, 40)})
LABELS = dpl.Schema({"a": (0, 10), "b": (-5, 5), "high": "boolean"})
ENOUGH: dict[str, Any] = {"guarantee": dpl.ZCDP(1e9), "progress": False}
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "progress": False}


def draw(count: int, seed: int) -> Any:
    random = simulation.generator(seed)
    a, b = random.uniform(0, 10, count), random.uniform(-5, 5, count)
    y = np.clip(15 + a + 2 * b + random.normal(0, 3, count), 0, 40)
    return pd.DataFrame({"a": a, "b": b, "y": y, "high": y > 22})


def line(coefficients: tuple[float, float] = (1.1, 1.9), intercept: float = 14.5) -> ModelRelease:
    with simulation.door(1):
        made: ModelRelease = dpl.release_model(draw(500, 1), SCHEMA, "y", ["a", "b"], **BUDGET)
    values = NamedVector(("a", "b"), np.array(coefficients))
    return replace(made, coefficients=values, intercept=intercept)


def odds(coefficients: tuple[float, float] = (0.6, 1.1), intercept: float = -4.0) -> ModelRelease:
    with simulation.door(1):
        made: ModelRelease
        made = dpl.release_model(draw(500, 1), LABELS, "high", loss="logistic", **BUDGET)
    values = NamedVector(("a", "b"), np.array(coefficients))
    return replace(made, coefficients=values, intercept=intercept)


def of_values(y: Any, predicted: Any) -> dict[str, float]:
    return {
        "r2": metrics.r2_score(y, predicted),
        "rmse": metrics.root_mean_squared_error(y, predicted),
        "mae": metrics.mean_absolute_error(y, predicted),
        "bias": float(np.mean(y - predicted)),
    }


def of_labels(y: Any, chances: Any) -> dict[str, float]:
    return {
        "auc": metrics.roc_auc_score(y, chances),
        "accuracy": metrics.accuracy_score(y, chances > 0.5),
        "log_loss": metrics.log_loss(y, chances),
        "brier": metrics.brier_score_loss(y, chances),
        "calibration": float(np.mean(y) - np.mean(chances)),
    }


# With a budget without end


def test_scores_of_values_are_scikit_learns() -> None:
    rows, model = draw(4_000, 2), line()
    found = dpl.release_scores(model, rows, **ENOUGH)
    for name, wanted in of_values(rows.y, model.predict(rows)).items():
        assert found[name] == pytest.approx(wanted, rel=1e-3, abs=1e-3), name
    assert sum(each.count for each in found.residual_sizes()) == pytest.approx(4_000, abs=1)


def test_scores_of_labels_are_scikit_learns() -> None:
    rows, model = draw(4_000, 3), odds()
    found = dpl.release_scores(model, rows, **ENOUGH)
    chances = model.predict_proba(rows)[:, 1]
    for name, wanted in of_labels(rows.high, chances).items():
        near = 5e-3 if name == "auc" else 1e-3  # rows of one bin are ties
        assert found[name] == pytest.approx(wanted, abs=near), name
    for each in found.reliability():
        own = (chances > each.low) & (chances <= each.high)
        assert each.observed == pytest.approx(rows.high[own].mean(), abs=1e-3)


def test_models_of_others_are_put_to_each_row() -> None:
    train, rows = draw(500, 4), draw(600, 5)
    numbers = train[["a", "b"]]
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(numbers, train.y)
    scaled = make_pipeline(StandardScaler(), LinearRegression()).fit(numbers.to_numpy(), train.y)
    for model, given in ((tree, rows[["a", "b"]]), (scaled, rows[["a", "b"]].to_numpy())):
        found = dpl.release_scores(model, rows, SCHEMA, "y", ["r2", "rmse"], **ENOUGH)
        wanted = of_values(rows.y, model.predict(given))
        assert found["r2"] == pytest.approx(wanted["r2"], abs=2e-3)
        assert found["rmse"] == pytest.approx(wanted["rmse"], rel=2e-3)
    labelled = LogisticRegression().fit(numbers, train.high)
    found = dpl.release_scores(labelled, rows, LABELS, "high", ["brier"], **ENOUGH)
    chances = labelled.predict_proba(rows[["a", "b"]])[:, 1]
    assert found["brier"] == pytest.approx(of_labels(rows.high, chances)["brier"], abs=1e-3)


def test_pipelines_of_columns_are_given_columns() -> None:
    random = simulation.generator(6)
    rows = pd.DataFrame(
        {"ward": random.choice(["n", "s", "e"], 400), "y": random.uniform(0, 9, 400)}
    )
    rows.loc[rows.ward == "s", "y"] += 5
    model = make_pipeline(OneHotEncoder(), LinearRegression()).fit(rows[["ward"]], rows.y)
    schema = dpl.Schema({"ward": {"type": "category", "levels": ["e", "n", "s"]}, "y": (0, 15)})
    found = dpl.release_scores(model, rows, schema, "y", ["r2"], **ENOUGH)
    wanted = metrics.r2_score(rows.y, model.predict(rows[["ward"]]))
    assert found["r2"] == pytest.approx(wanted, abs=2e-3)


def test_a_fit_of_moments_is_a_model() -> None:
    rows = draw(3_000, 7)
    fit = dpl.release_moments(rows, SCHEMA, **ENOUGH).regress("y", ["a", "b"])
    found = dpl.release_scores(fit, rows, **ENOUGH)
    assert found["r2"] == pytest.approx(metrics.r2_score(rows.y, fit.predict(rows)), abs=1e-3)
    assert found["bias"] == pytest.approx(0, abs=1e-2)


# Intervals


@pytest.mark.parametrize("n", [1_000, 10_000])
def test_intervals_hold_what_they_should(n: int) -> None:
    """Of 95% intervals fewer than 50 of 60 hold once in 1,000 tests, for any of nine scores.

    One that is hidden does not hold.
    """
    value, label = line(), odds()
    whole = draw(400_000, 8)
    truths = of_values(whole.y, value.predict(whole))
    truths |= of_labels(whole.high, label.predict_proba(whole)[:, 1])
    held = dict.fromkeys(truths, 0)
    for seed in range(60):
        rows = draw(n, 100 + seed)
        for model in (value, label):
            with simulation.door(seed):
                for score in dpl.release_scores(model, rows, **BUDGET).all():
                    low, high = score.interval(0.95)
                    held[score.name] += low <= truths[score.name] <= high
    assert min(held.values()) >= 50, held


def test_where_noise_hides_a_score_it_says_so() -> None:
    with simulation.door(3):
        found = dpl.release_scores(line(), draw(20, 3), **BUDGET)
    score = found.score("r2")
    assert score.unknown is not None
    assert math.isnan(score.value)
    assert "hidden" in found.summary()


def test_fewer_scores_have_less_noise() -> None:
    rows, model = draw(2_000, 4), line()
    with simulation.door(4):
        few = dpl.release_scores(model, rows, scores="mae", **BUDGET)
        all_of_them = dpl.release_scores(model, rows, **BUDGET)
    assert few.score("mae").privacy_error < all_of_them.score("mae").privacy_error


# Rows


def test_rows_without_a_target_or_a_feature_are_left_out() -> None:
    rows, model = draw(3_000, 5), line()
    gaps = rows.copy()
    gaps.loc[::7, "y"] = np.nan
    gaps.loc[::11, "a"] = np.nan
    whole = gaps.dropna()
    found = dpl.release_scores(model, gaps, **ENOUGH)
    assert found.count == pytest.approx(len(whole), abs=1)
    assert found["mae"] == pytest.approx(of_values(whole.y, model.predict(whole))["mae"], rel=1e-3)
    assert "not scored" in " ".join(found.summary().split())


def test_a_number_of_rows_is_public_only_under_replace() -> None:
    column = {"type": "number", "low": 0, "high": 40, "missing": 1}
    filled = dpl.Schema(dict.fromkeys(("a", "b", "y"), column))
    model = replace(line(), schema=filled)
    rows = draw(900, 6)
    added = dpl.release_scores(model, rows, **BUDGET)
    replaced = dpl.release_scores(model, rows, neighbours=Neighbours.REPLACE, **BUDGET)
    assert (added.rows, replaced.rows) == (None, None if filled.count_varies else 900)
    gapped = dpl.release_scores(line(), rows, neighbours=Neighbours.REPLACE, **BUDGET)
    assert gapped.rows is None


# Requests, files, arguments


def test_the_same_request_is_the_same_release(tmp_path: Path) -> None:
    rows = draw(800, 7)
    ledger = dpl.open_ledger(tmp_path / "b.db", create=True)
    ledger.declare("d", dpl.ZCDP(1.0))
    asked: dict[str, Any] = {"ledger": ledger, "dataset": "d", "request": "r", **BUDGET}
    first = dpl.release_scores(line(), rows, **asked)
    assert dpl.release_scores(line(), rows, **asked).describe() == first.describe()
    with pytest.raises(dpl.LedgerError, match="other arguments"):
        dpl.release_scores(line((2.0, 0.0)), rows, **asked)


@pytest.mark.parametrize("which", [line, odds])
def test_a_file_holds_all_of_it(which: Any, tmp_path: Path) -> None:
    found = dpl.release_scores(which(), draw(800, 8), **BUDGET)
    found.save(tmp_path / "s.json")
    again = dpl.load(tmp_path / "s.json", kind="scores")
    assert again.describe() == found.describe()
    assert again._repr_html_() == found._repr_html_()
    again.save(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_bytes() == (tmp_path / "s.json").read_bytes()


@pytest.mark.parametrize("which", [line, odds])
def test_whatever_scores_are_asked_for_can_be_saved(which: Any, tmp_path: Path) -> None:
    model, rows = which(), draw(300, 8)
    names = dpl.release_scores(model, rows, **BUDGET).names
    for name in names:
        found = dpl.release_scores(model, rows, scores=[name], **BUDGET)
        found.save(tmp_path / f"{name}.json")
        assert dpl.load(tmp_path / f"{name}.json").describe() == found.describe()


def test_the_class_that_is_the_label_is_found_by_its_name() -> None:
    rows = draw(2_000, 12)
    rows["grade"] = np.where(rows.high, "high", "low")
    model = LogisticRegression().fit(rows[["a", "b"]], rows.grade)
    wanted = metrics.roc_auc_score(rows.high, model.predict_proba(rows[["a", "b"]])[:, 0])
    for levels in (["high", "low"], ["low", "high"]):
        schema = dpl.Schema({"a": (0, 10), "b": (-5, 5), "grade": levels})
        target = schema.own_features("grade")[0]
        name = schema.names[target]
        found = dpl.release_scores(model, rows, schema, name, ["auc"], **ENOUGH)
        # AUCs of either label are the same where odds are turned round with it.
        assert found["auc"] == pytest.approx(wanted, abs=1e-2)


def test_survey_weights_make_no_rows() -> None:
    """Of 4,000 rows with weights up to 1,000: errors as of 4,000 rows or fewer."""
    rows = draw(4_000, 13).assign(w=simulation.generator(1).uniform(500, 1000, 4_000))
    columns = {"a": (0, 10), "b": (-5, 5), "y": (0, 40)}
    weighted = dpl.Schema(columns, weight=("w", 0, 1000))
    found = dpl.release_scores(line(), rows, weighted, **ENOUGH)
    plain = dpl.release_scores(line(), rows, **ENOUGH)
    assert found.count == pytest.approx(float(rows.w.sum()), rel=1e-3)
    for score in found.all():
        assert score.standard_error > 0.95 * plain.score(score.name).standard_error


class _Locked:
    """A model that cannot be pickled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def predict(self, rows: Any) -> Any:
        return rows[:, 0]


class _Never:
    def predict(self, rows: Any) -> Any:
        raise ValueError(rows)


class _Wide:
    def predict(self, rows: Any) -> Any:
        return np.zeros((len(rows), 3))


def test_a_path_is_a_model(tmp_path: Path) -> None:
    line().save(tmp_path / "m.json")
    rows = draw(500, 9)
    with simulation.door(5):
        one = dpl.release_scores(str(tmp_path / "m.json"), rows, **BUDGET)
    with simulation.door(5):
        other = dpl.release_scores(line(), rows, **BUDGET)
    assert one.summary() == other.summary()


class _Three:
    classes_ = (0, 1, 2)

    def predict(self, rows: Any) -> Any:
        return rows


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model": 3}, "model"),
    "three classes": ({"model": _Three(), "schema": LABELS, "target": "high"}, "model"),
    "a class that is no label": (
        {
            "model": LogisticRegression().fit([[0, 0], [1, 1]], [3, 4]),
            "schema": LABELS,
            "target": "high",
        },
        "model",
    ),
    "a model that predicts nothing": (
        {"model": _Never(), "schema": SCHEMA, "target": "y"},
        "model",
    ),
    "a model of three numbers": ({"model": _Wide(), "schema": SCHEMA, "target": "y"}, "model"),
    "a model that stays": (
        {
            "model": _Locked(),
            "schema": SCHEMA,
            "target": "y",
            "engine": "dask",
            "data": "no.parquet",
        },
        "model",
    ),
    "no schema": ({"model": LinearRegression(), "target": "y"}, "schema"),
    "no target": ({"model": LinearRegression(), "schema": SCHEMA}, "target"),
    "another target": ({"target": "a"}, "target"),
    "features of its own": ({"features": ["a"]}, "features"),
    "a schema that lacks a feature": ({"schema": {"a": (0, 1), "y": (0, 40)}}, "schema"),
    "a score of labels": ({"scores": ["auc"]}, "scores"),
    "no scores": ({"scores": []}, "scores"),
    "a score twice": ({"scores": ["mae", "mae"]}, "scores"),
    "the target as a feature": (
        {"model": LinearRegression(), "schema": SCHEMA, "target": "y", "features": ["y"]},
        "features",
    ),
    "pure ε": ({"delta": None}, "delta"),
    "an unknown option": ({"steps": 3}, "steps"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_wrong_arguments_are_named_before_anything_is_spent(why: str, tmp_path: Path) -> None:
    given, parameter = REFUSED[why]
    ledger = dpl.open_ledger(tmp_path / "b.db", create=True)
    ledger.declare("d", dpl.ZCDP(1.0))
    asked: dict[str, Any] = {"model": line(), "data": draw(50, 1), **BUDGET}
    with pytest.raises(ArgumentError) as caught:
        dpl.release_scores(**asked | given, ledger=ledger, dataset="d")
    assert (caught.value.parameter, caught.value.where) == (parameter, "release_scores")
    assert next(iter(ledger.status())).releases == 0
