"""Units of privacy and survey weights of models in a constraint set, at the gate."""

import datetime as dt
import warnings
from collections import Counter
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import dplinear as dpl
from dplinear.adaptive.noisy_sums import NoisySums
from dplinear.analyst.releases.constrained import ConstrainedRelease
from dplinear.arguments import ArgumentError
from dplinear.convex.learners.contract import Task
from dplinear.convex.sets import L2Ball
from dplinear.curator.gates import constrained
from dplinear.curator.row_weights import RowWeights
from dplinear.exact.row_sums import Count
from dplinear.exact.weights import WHOLE
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.units import Unit

ROWS = 400
RANDOM = simulation.generator(0)
X = RANDOM.normal(size=(ROWS, 4))
Y = np.clip(X[:, 0] - 0.5 * X[:, 1] + 0.1 * RANDOM.normal(size=ROWS), -3, 3)
IDS = RANDOM.integers(0, 60, ROWS)
WEIGHTS = RANDOM.uniform(0, 6, ROWS)
BALL = partial(L2Ball, radius=1.0)
# Every learner, with what it takes to run on this table.
LEARNERS: dict[str, dict[str, Any]] = {
    "noisy_gradient": {},
    "mirror_descent": {},
    "frank_wolfe": {},
    "whitened": {"projection": None},
    "exponential": {"delta": None},
    "exponential ball": {"delta": None, "constraint": BALL},
    "output_perturbation": {"projection": None},
}


def released(
    name: str = "noisy_gradient", rows: Any = X, labels: Any = Y, **given: Any
) -> ConstrainedRelease:
    usual: dict[str, Any] = {"row_norm": 3.0, "constraint": 1.0, "target_bounds": (-3, 3)}
    usual |= {"epsilon": 1.0, "delta": 1e-6, "mechanism": name.split(maxsplit=1)[0]}
    with simulation.door(3):
        found = dpl.release_model(rows, target=labels, **(usual | LEARNERS.get(name, {}) | given))
    assert isinstance(found, ConstrainedRelease)
    return found


def weights_of(groups: Any, k: int = 1, sample_weight: Any = None, bound: float = 5.0) -> Any:
    unit = None if groups is None else Unit("id", k)
    return RowWeights(groups, sample_weight, unit, bound).read()


# What a row weighs


@pytest.mark.parametrize("k", [1, 3, 50])
def test_weights_are_shares_of_a_unit(k: int) -> None:
    """Against fractions: never above, and below by less than one part in 2,048 and 2^−24."""
    counts = Counter(IDS.tolist())
    for unit, weight in zip(IDS.tolist(), weights_of(IDS, k).tolist(), strict=True):
        ideal = Fraction(1, max(k, counts[unit]))
        assert 0 <= ideal - Fraction(weight, WHOLE) <= ideal / 2_048 + Fraction(1, WHOLE)


def ideal_share(value: float) -> Fraction:
    return min(max(Fraction(value), Fraction(0)), Fraction(5)) / 5


def test_survey_weights_are_clamped_parts_of_their_bound() -> None:
    for value, weight in zip(WEIGHTS, weights_of(None, sample_weight=WEIGHTS), strict=True):
        ideal = ideal_share(float(value))
        assert 0 <= ideal - Fraction(int(weight), WHOLE) <= ideal / 2_048 + Fraction(2, WHOLE)


@pytest.mark.parametrize("k", [1, 4])
def test_a_unit_is_capped_by_its_total_weight(k: int) -> None:
    found = weights_of(IDS, k, WEIGHTS)
    totals: dict[int, Fraction] = {}
    for unit, value in zip(IDS.tolist(), WEIGHTS.tolist(), strict=True):
        totals[unit] = totals.get(unit, Fraction(0)) + ideal_share(value)
    rows = zip(IDS.tolist(), WEIGHTS.tolist(), found.tolist(), strict=True)
    for unit, value, weight in rows:
        ideal = ideal_share(value) / max(Fraction(k), totals[unit])
        assert abs(ideal - Fraction(weight, WHOLE)) <= ideal / 500 + Fraction(2, WHOLE)
    assert max(np.bincount(IDS, found)) <= WHOLE


def test_weights_depend_on_the_units_own_rows_alone() -> None:
    mine = IDS == 7
    others = np.where(mine, 7, 1_000 + np.arange(ROWS) % 3)
    for sample_weight in (None, WEIGHTS):
        elsewhere = sample_weight if sample_weight is None else np.where(mine, WEIGHTS, 99.0)
        first = weights_of(IDS, 2, sample_weight)[mine]
        assert (first == weights_of(others, 2, elsewhere)[mine]).all()


@pytest.mark.parametrize(
    "ids",
    [
        IDS.astype(str),
        IDS.astype(object),
        IDS.astype(float),
        np.array([f"00{unit}" for unit in IDS]),
        pa.array(IDS),
        pa.chunked_array([IDS[:100], IDS[100:]]),
        pa.array(IDS.astype(str)).dictionary_encode(),
        np.datetime64("2020-01-01") + IDS,
        np.array([dt.date(2020, 1, 1) + dt.timedelta(int(unit)) for unit in IDS], object),
        np.ma.array(IDS, mask=False),
        IDS.astype("m8[s]"),
        pa.array(IDS.astype("m8[ms]")),
    ],
)
def test_ids_are_of_any_type(ids: Any) -> None:
    assert (weights_of(ids, 2) == weights_of(IDS, 2)).all()


def test_rows_of_nobody_weigh_nothing() -> None:
    nobody: list[Any] = [None, np.nan, "", "NaN", pa.NA, [1], object()]
    ids = np.empty(ROWS + len(nobody), object)
    ids[:ROWS] = IDS
    for index, cell in enumerate(nobody):
        ids[ROWS + index] = cell
    found = weights_of(ids, 2)
    assert (found[:ROWS] == weights_of(IDS, 2)).all()
    assert not found[ROWS:].any()
    masked = weights_of(np.ma.array(IDS, mask=IDS == 3), 2)
    assert not masked[IDS == 3].any()
    assert (masked[IDS != 3] == weights_of(IDS, 2)[IDS != 3]).all()


def test_long_ids_are_told_apart() -> None:
    ids = np.array(["12345678901234567", "12345678901234568"] * 3)
    assert (weights_of(ids) == weights_of(np.array([0, 1] * 3))).all()


# What is released


@pytest.mark.parametrize("name", LEARNERS)
def test_each_row_a_unit_is_the_release_of_rows(name: str) -> None:
    """And weights of all ones are no weights.

    In a ball proposals are other ones, of finer integers: the law is the same, to the last bit,
    and of these bits so is what they are rounded to, but for rare ends.
    """
    plain, off = released(name).theta, 1e-7 if name == "exponential ball" else 0.0
    units = released(name, groups=np.arange(ROWS)).theta
    ones = released(name, sample_weight=np.full(ROWS, 2.0), weight_bound=2).theta
    assert np.abs(units - plain).max() <= off
    assert np.abs(ones - plain).max() <= off


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("name", LEARNERS)
def test_order_and_container_say_nothing(name: str, neighbours: str) -> None:
    order = simulation.generator(2).permutation(ROWS)
    given: dict[str, Any] = {"rows_per_unit": 3, "neighbours": neighbours}
    first = released(name, groups=IDS, **given).theta
    shuffled = released(name, X[order], Y[order], groups=IDS[order], **given).theta
    assert (first == shuffled).all()
    if name != "whitened":
        thin = released(name, sparse.csr_array(X), groups=IDS.astype(str), **given)
        assert (thin.theta == first).all()


@pytest.mark.parametrize("name", LEARNERS)
def test_rows_of_nobody_do_not_count(name: str) -> None:
    wild = np.vstack([X, np.full((50, 4), 1e9)]), np.append(Y, np.full(50, 3.0))
    ids = np.append(IDS.astype(object), np.array([None] * 50, object))
    assert (released(name, *wild, groups=ids).theta == released(name, groups=IDS).theta).all()


@pytest.mark.parametrize("name", ["noisy_gradient", "frank_wolfe", "output_perturbation"])
def test_many_rows_of_a_unit_count_once(name: str) -> None:
    """A unit whose rows are there a hundred times over is where it was."""
    ids = np.arange(ROWS)
    first = np.r_[np.zeros(100, int), ids[1:]]
    found = released(name, X[first], Y[first], groups=first)
    plain = released(name, groups=ids)
    assert np.abs(found.theta - plain.theta).max() < 1e-3  # a hundredth is rounded down


def test_weights_weigh() -> None:
    """Without much noise it is least squares of the weighted rows."""
    labels = np.where(np.arange(ROWS) < 200, X[:, 0], -X[:, 0])
    heavy = np.where(np.arange(ROWS) < 200, 5.0, 0.5)
    given: dict[str, Any] = {"epsilon": 200.0, "constraint": BALL, "steps": 200}
    found = released("noisy_gradient", X, labels, sample_weight=heavy, weight_bound=5, **given)
    scaled = X / np.maximum(np.linalg.norm(X, axis=1) / 3, 1)[:, None]
    root = np.sqrt(heavy)
    expected = np.linalg.lstsq(scaled * root[:, None], np.clip(labels, -3, 3) * root, rcond=None)[0]
    assert np.abs(found.coefficients - expected).max() < 0.1
    assert found.coefficients[0] > 0.5
    plain = released("noisy_gradient", X, labels, **given)
    assert plain.coefficients[0] < 0.3


def test_certificates_and_summaries_name_unit_and_bound() -> None:
    found = released(groups=IDS, unit="patient", rows_per_unit=3)
    certificate = found.certificate
    assert (certificate.unit, certificate.rows_per_unit) == ("patient", 3)
    assert "'patient', counted as at most 3 rows" in str(found.summary())
    assert released(groups=IDS).certificate.unit == "groups"
    weighted = released(sample_weight=WEIGHTS, weight_bound=5)
    assert weighted.certificate.unit is None
    assert weighted.certificate.parameters["weight_bound"] == 5
    assert "survey weights: of at most 5" in str(weighted.summary())


def test_saved_releases_know_their_unit(tmp_path: Any) -> None:
    found = released(groups=IDS, unit="patient", sample_weight=WEIGHTS, weight_bound=5)
    found.save(tmp_path / "model.dpl")
    again: Any = dpl.load(tmp_path / "model.dpl")
    assert again.certificate.unit == "patient"
    assert (again.theta == found.theta).all()


def test_the_number_of_rows_is_not_public_with_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the release, and not in what the learner is prepared for."""
    seen: list[Any] = []

    def kept(*facts: Any) -> Any:
        seen.append(Task(*facts))
        return seen[-1]

    monkeypatch.setattr(constrained, "Task", kept)
    given: dict[str, Any] = {"neighbours": "replace"}
    assert released(**given).rows == ROWS
    assert released(groups=IDS, **given).rows is None
    assert released(groups=IDS, rows_per_unit=4, expected_rows=1_000, **given).rows is None
    assert [each.rows for each in seen] == [float(ROWS), None, 250.0]
    assert [each.weighted for each in seen] == [False, True, True]


@pytest.mark.parametrize("name", ["noisy_gradient", "whitened", "mirror_descent"])
def test_an_empty_table_is_released_in_the_same_units(name: str) -> None:
    """So that a table of one unit and one of none cannot be told apart by a grid."""
    found = released(name, X[:0], Y[:0], groups=IDS[:0])
    assert found.certificate.unit == "groups"
    assert found.theta.shape == (4,)


# What is refused, before anything is spent


class Spent(Exception):  # noqa: N818 - no error, but a mark
    """Raised by a ledger that is asked to spend."""


class Ledger:
    def spend(self, request: Any) -> None:
        raise Spent


def refused(**given: Any) -> ArgumentError:
    with pytest.raises(ArgumentError) as caught:
        released(ledger=Ledger(), **given)
    assert caught.value.where == "release_model"
    return caught.value


@pytest.mark.parametrize(
    ("parameter", "given"),
    [
        ("unit", {"unit": "patient"}),
        ("rows_per_unit", {"rows_per_unit": 2}),
        ("rows_per_unit", {"groups": IDS, "rows_per_unit": 0}),
        ("rows_per_unit", {"groups": IDS, "rows_per_unit": 1.5}),
        ("unit", {"groups": IDS, "unit": 7}),
        ("unit", {"groups": IDS, "unit": " "}),
        ("groups", {"groups": IDS.tolist()}),
        ("groups", {"groups": "all"}),
        ("groups", {"groups": IDS[:-1]}),
        ("groups", {"groups": IDS[:, None]}),
        ("groups", {"groups": IDS.astype(complex)}),
        ("groups", {"groups": pa.array([[int(unit)] for unit in IDS])}),
        ("groups", {"groups": pa.chunked_array([[{"id": int(unit)} for unit in IDS]])}),
        ("sample_weight", {"sample_weight": pa.array([[1.0]] * ROWS), "weight_bound": 5}),
        ("sample_weight", {"sample_weight": WEIGHTS[1:], "weight_bound": 5}),
        ("sample_weight", {"sample_weight": WEIGHTS.tolist(), "weight_bound": 5}),
        ("weight_bound", {"sample_weight": WEIGHTS}),
        ("weight_bound", {"sample_weight": WEIGHTS, "weight_bound": 0}),
        ("weight_bound", {"sample_weight": WEIGHTS, "weight_bound": np.inf}),
        ("weight_bound", {"weight_bound": 5}),
        ("unit", {"groups": IDS, "name": "objective_perturbation", "projection": None}),
    ],
)
def test_wrong_arguments_are_named_before_the_spend(parameter: str, given: dict[str, Any]) -> None:
    found = refused(**given)
    assert found.parameter == parameter
    assert "0x" not in str(found)
    with pytest.raises(Spent):
        released(ledger=Ledger(), groups=IDS)


def test_ids_are_not_quoted() -> None:
    secret = np.array(["Ada Lovelace"] * (ROWS - 1))
    assert "Ada" not in str(refused(groups=secret))
    assert "Ada" not in str(refused(groups=secret.tolist()))
    assert "Ada" not in str(refused(rows_per_unit=secret))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("groups", IDS), ("sample_weight", WEIGHTS), ("weight_bound", 5.0)],
)
def test_models_of_columns_have_them_in_their_schema(parameter: str, value: Any) -> None:
    table = pa.table({"a": X[:, 0], "b": Y})
    with pytest.raises(ArgumentError) as caught:
        dpl.release_model(
            table,
            {"a": (-3, 3), "b": (-3, 3)},
            "b",
            epsilon=1.0,
            delta=1e-6,
            ledger=Ledger(),
            **{parameter: value},
        )
    assert caught.value.parameter == parameter
    hints = {"groups": "unit=", "sample_weight": "weight="}
    assert hints.get(parameter, "") in caught.value.hint


def test_single_rows_with_weights_perturb_the_objective() -> None:
    """The proof of one row holds for a part of it; that of all rows of a unit is not known."""
    given: dict[str, Any] = {"sample_weight": WEIGHTS, "weight_bound": 5, "projection": None}
    found = released("objective_perturbation", **given)
    assert found.certificate.holds is not None


@pytest.mark.parametrize("name", [*LEARNERS, "objective_perturbation"])
def test_a_row_that_is_replaced_may_change_its_weight(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what all rows weigh is not public, and is counted with noise where it is counted."""
    counted: list[Count] = []
    ask = NoisySums.ask

    def kept(self: Any, queries: Any, rows: Any = None) -> Any:
        counted.extend(query.statistic for query in queries if isinstance(query.statistic, Count))
        return ask(self, queries, rows)

    monkeypatch.setattr(NoisySums, "ask", kept)
    given: dict[str, Any] = {"sample_weight": WEIGHTS, "weight_bound": 5, "projection": None}
    found = released(name, neighbours="replace", **given)
    assert found.certificate.neighbours == "replace"
    assert found.rows is None
    assert bool(counted) == (name in {"noisy_gradient", "whitened"})
    assert all(count.sensitivity_squared(Neighbours.REPLACE) == 1 for count in counted)


def test_no_weight_and_no_id_raises_or_warns() -> None:
    bad = np.array(["nan", None, "heavy", -3.0, float("-inf"), 10**400, "1e999", object()] * 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released(sample_weight=bad, weight_bound=5)
        released(groups=bad, sample_weight=bad, weight_bound=5)


# The ledger


def test_a_budget_of_patients_is_for_patients(tmp_path: Any) -> None:
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("visits", dpl.ApproxDP(10, 1e-3), unit="patient")
    given: dict[str, Any] = {"ledger": ledger, "dataset": "visits"}
    released(groups=IDS, unit="patient", **given)
    others: list[dict[str, Any]] = [{"groups": IDS}, {}]
    for number, other in enumerate(others):
        with pytest.raises(dpl.LedgerError, match="patient"):
            released(request=f"other {number}", **other, **given)
    assert [status.releases for status in ledger.status()] == [1]


def test_a_request_is_of_its_unit_and_of_its_bound(tmp_path: Any) -> None:
    """The arrays are private, and no part of it; what is public of them is."""
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("visits", dpl.ApproxDP(50, 1e-3), unit="patient")
    given: dict[str, Any] = {"ledger": ledger, "dataset": "visits", "request": "first"}
    given |= {"unit": "patient", "sample_weight": WEIGHTS, "weight_bound": 5}
    first = released(groups=IDS, **given)
    again = released(groups=IDS.astype(str), **given)
    assert (again.theta == first.theta).all()
    for change in ({"rows_per_unit": 2}, {"weight_bound": 6}):
        with pytest.raises(dpl.LedgerError, match="first"):
            released(groups=IDS, **(given | change))
