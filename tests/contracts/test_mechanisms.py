"""What every mechanism must do, whichever it is: one suite for all."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from dplinear.analyst.noise_models.matrices import NoiseModel
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import MomentsMechanism
from dplinear.noise import simulation
from dplinear.papers.sheffet import published
from dplinear.papers.sheffet.published import PreparedPosterior
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, PureDP
from dplinear.registry import MOMENTS
from mechanisms.tables import axis, random_statistic, shape_of, statistic

ASKED = ApproxDP(1.0, 1e-6)
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("analyze_gauss", {}),
    ("additive_wishart", {}),
    ("additive_wishart", {"scale": 2.0}),
    ("sketch", {}),
    ("sketch", {"rows": 2}),
    ("sketch", {"release": "sketch"}),
    ("sketch", {"least_eigenvalue_share": 0.2}),
    ("sketch", {"least_eigenvalue_share": 0.2, "adjust": "rows", "ridge": 1.0}),
    ("inverse_wishart", {}),
    ("inverse_wishart", {"least_eigenvalue_share": 0.2}),
    ("inverse_wishart", {"least_eigenvalue_share": 0.2, "adjust": "rows"}),
]
KINDS = dict(MOMENTS) | {f"published {name}": kind for name, kind in published.MECHANISMS.items()}
PAPER = [
    (f"published {name}", options)
    for name, options in VARIANTS
    if "scale" not in options and options.get("rows") != 2
]

every_variant = pytest.mark.parametrize(("name", "options"), VARIANTS + PAPER)
every_relation = pytest.mark.parametrize("relation", ["add_remove", "replace"])


def build(name: str, options: dict[str, Any], relation: str = "add_remove", **more: Any) -> Any:
    return KINDS[name](**{"guarantee": ASKED, "neighbours": relation, **options, **more})


@pytest.fixture(scope="module")
def tables() -> list[Statistic]:
    """An empty table, one row, one row along an axis, a hundred rows, and a single column."""
    shape = shape_of(3)
    return [
        statistic(shape, []),
        statistic(shape, [[100, -100, 57]]),
        statistic(shape, [axis(shape, 2)]),
        random_statistic(shape, 100, seed=1),
        statistic(shape_of(1), []),
        statistic(shape_of(1), [[256], [-3]]),
    ]


def test_the_map_names_every_mechanism() -> None:
    assert sorted(MOMENTS) == ["additive_wishart", "analyze_gauss", "inverse_wishart", "sketch"]
    for name, kind in MOMENTS.items():
        assert issubclass(kind, MomentsMechanism)
        assert kind.name == name
        assert kind.numerics == "exact"
        assert kind.calibration == "exact"


def test_every_mechanism_has_its_published_variant() -> None:
    assert list(published.MECHANISMS) == list(MOMENTS)
    for name, kind in published.MECHANISMS.items():
        assert issubclass(kind, MOMENTS[name])
        assert kind.calibration == "paper"


@every_relation
@every_variant
def test_any_table_is_measured(
    name: str, options: dict[str, Any], relation: str, tables: list[Statistic]
) -> None:
    mechanism = build(name, options, relation)
    prepared = {shape: mechanism.prepare(shape) for shape in {table.shape for table in tables}}
    for table in tables:
        d = table.shape.dimension
        measured = prepared[table.shape].run(table, simulation.entropy(1))
        values = measured.values
        assert np.isfinite(values).all()
        assert values.dtype == np.float64
        if options.get("release") == "sketch":
            assert values.shape == (measured.parameters["rows"], d)
        else:
            assert values.shape == (d, d)
            assert np.array_equal(values, values.T)
        assert (
            NoiseModel.from_dict(json.loads(json.dumps(measured.noise_model.to_dict())))
            == measured.noise_model
        )
        assert json.loads(json.dumps(dict(measured.parameters))) == dict(measured.parameters)


@every_relation
@every_variant
def test_accounts_hold_what_they_say(name: str, options: dict[str, Any], relation: str) -> None:
    table = random_statistic(shape_of(4), 50, seed=2)
    prepared = build(name, options, relation).prepare(table.shape)
    account = prepared.run(table, simulation.entropy(2)).account
    assert account.asked == prepared.account.asked == ASKED
    waits = isinstance(prepared, PreparedPosterior)
    if not waits:
        assert prepared.account == account
    assert all(isinstance(note, str) for note in account.notes)
    if waits and relation == "add_remove":
        assert account.holds is None
        return
    assert account.profile is not None
    assert account.profile.neighbours == relation
    assert account.profile.delta(account.holds.epsilon) <= account.holds.delta == ASKED.delta
    if name in MOMENTS:
        assert account.holds == ASKED
        least = 0.8 if "scale" in options else 0.999  # degrees are whole numbers
        assert least * ASKED.delta < account.profile.delta(ASKED.epsilon)
    curve = account.profile.curve(np.array([0.0, 0.1, 0.5, 1.0, 2.0, 8.0]))
    assert (np.diff(curve) <= 0).all()
    assert (curve <= 1).all()


@every_variant
def test_the_same_entropy_gives_the_same_release(name: str, options: dict[str, Any]) -> None:
    table = random_statistic(shape_of(3), 20, seed=3)
    prepared = build(name, options).prepare(table.shape)
    one, again = (prepared.run(table, simulation.entropy(4)) for _ in range(2))
    other = prepared.run(table, simulation.entropy(5))
    assert np.array_equal(one.values, again.values)
    assert one.parameters == again.parameters
    assert not np.array_equal(one.values, other.values)


@every_relation
@pytest.mark.parametrize("name", sorted(MOMENTS))
@pytest.mark.parametrize("epsilon", [1e-3, 1e6])
def test_small_and_large_budgets(name: str, relation: str, epsilon: float) -> None:
    table = random_statistic(shape_of(3, 20), 1000, seed=4)
    asked = ApproxDP(epsilon, 1e-6)
    prepared = build(name, {}, relation, guarantee=asked).prepare(table.shape)
    measured = prepared.run(table, simulation.entropy(6))
    assert np.isfinite(measured.values).all()
    assert measured.account.holds == asked
    assert measured.account.profile is not None
    assert measured.account.profile.delta(epsilon) <= 1e-6


@pytest.mark.parametrize("name", sorted(MOMENTS))
def test_two_hundred_columns(name: str) -> None:
    shape = Shape(200, 2**20, 24)
    table = random_statistic(Shape(200, 2**10, 14), 30, seed=5)
    wide = Statistic(shape, table.integers * 4**10)
    measured = build(name, {}).prepare(shape).run(wide, simulation.entropy(7))
    assert measured.values.shape == (200, 200)
    assert np.isfinite(measured.values).all()


@pytest.mark.parametrize("name", sorted(MOMENTS))
@pytest.mark.parametrize(
    "guarantee",
    [PureDP(1.0), ApproxDP(1.0, 0.0), ApproxDP(0.0, 1e-6), GDP(1.0), MIDP(1.0), ZCDP(1.0), "ε = 1"],
)
def test_what_cannot_be_promised_is_refused_with_a_hint(name: str, guarantee: Any) -> None:
    if name == "analyze_gauss" and isinstance(guarantee, ZCDP):
        assert build(name, {}, guarantee=guarantee).guarantee == guarantee
        name = "published analyze_gauss"
    with pytest.raises((TypeError, ValueError)) as caught:
        build(name, {}, guarantee=guarantee)
    sentence, hint = str(caught.value).split("\n\n")
    assert sentence.startswith("The 'guarantee' parameter of ")
    assert "must be an ApproxDP guarantee" in sentence
    assert hint.startswith("Hint: ")


@pytest.mark.parametrize("name", sorted(MOMENTS))
def test_wrong_options_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="'neighbours' parameter"):
        build(name, {}, "element")
    with pytest.raises(TypeError, match="calibration"):
        build(name, {"calibration": "paper"})
    if name != "analyze_gauss":
        with pytest.raises(ValueError, match="δ below 1/e"):
            build(f"published {name}", {}, guarantee=ApproxDP(0.5, 0.4)).prepare(shape_of(3))
    prepared = build(name, {}).prepare(shape_of(3))
    with pytest.raises(ValueError, match="'statistic' parameter"):
        prepared.run(statistic(shape_of(4), []), simulation.entropy(1))


@pytest.mark.parametrize(
    ("name", "options", "parameter"),
    [
        ("additive_wishart", {"scale": 0.0}, "scale"),
        ("published additive_wishart", {"scale": 1.0}, "scale"),
        ("additive_wishart", {"scale": 1e-30}, "scale"),
        ("additive_wishart", {"scale": 1e-300}, "scale"),
        ("additive_wishart", {"scale": 1e155}, "scale"),
        ("additive_wishart", {"most_degrees": 2}, "most_degrees"),
        ("additive_wishart", {"most_degrees": 4}, "most_degrees"),
        ("sketch", {"rows": 0}, "rows"),
        ("published sketch", {"rows": 3}, "rows"),
        ("sketch", {"release": "rows"}, "release"),
        ("sketch", {"adjust": "rows"}, "adjust"),
        ("sketch", {"adjust": "both"}, "adjust"),
        ("sketch", {"ridge": 1.0}, "ridge"),
        ("sketch", {"least_eigenvalue_share": 1.0}, "least_eigenvalue_share"),
        ("sketch", {"least_eigenvalue_share": 1e-15}, "least_eigenvalue_share"),
        ("sketch", {"most_rows": 0}, "most_rows"),
        ("inverse_wishart", {"degrees": 4}, "degrees"),
        ("inverse_wishart", {"most_degrees": 10**9}, "most_degrees"),
    ],
)
def test_wrong_options_of_their_own_are_refused(
    name: str, options: dict[str, Any], parameter: str
) -> None:
    rule = f"'{parameter}' parameter of (?!calibrate)"
    with pytest.raises(ValueError, match=rule):
        build(name, options).prepare(shape_of(3))


@every_variant
def test_mechanisms_are_frozen_values(name: str, options: dict[str, Any]) -> None:
    mechanism = build(name, options)
    assert mechanism == build(name, options)
    assert hash(mechanism) == hash(build(name, options))
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.calibration = "other"
