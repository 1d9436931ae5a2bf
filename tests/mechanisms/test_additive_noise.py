"""Additive noise: bits computed exactly on a coarse grid, the law of the noise, what a cell moves.

Averages are allowed 6 standard errors: 2e-9 by chance each, and there are fewer than 500 of them
(false-alarm rate 1e-6).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear.analyst.noise_models.rows import AdditiveRows
from dplinear.exact.grid import Grid
from dplinear.exact.shape import Shape
from dplinear.mechanisms import AdditiveNoise, PreparedRows
from dplinear.noise import simulation
from dplinear.papers.showkatbakhsh.published import PublishedAdditiveNoise
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, PureDP
from dplinear.privacy.bits import grid_bits_through, grid_variance_for
from dplinear.schema import Schema
from refusals import refused

ALLOWED = 6.0
CELLS = 8
FEW = 4  # in two dimensions
MIXED = Schema(
    {
        "age": {"type": "integer", "low": 0, "high": 99, "missing_indicator": True},
        "smoker": ["no", "yes"],
        "ward": {"type": "category", "levels": [1, 2, 3], "other": 3, "drop_first": False},
        "well": "boolean",
        "pay": (0, 5000),
    }
)


def channel(points: Any, variance: float) -> Any:
    """Return P(output | point) of the discrete Gaussian, from its definition; outputs in rows."""
    reach = int(np.abs(points).max() + 9 * math.sqrt(variance)) + 1
    line = np.arange(-reach, reach + 1)
    logs = np.exp(-(line**2) / (2 * variance))
    mass = np.zeros((len(points), *[len(line)] * points.shape[1]))
    for index, point in enumerate(points):
        product = np.ones(())
        for shift in point:
            product = np.multiply.outer(product, np.roll(logs, shift) / logs.sum())
        mass[index] = product
    return mass.reshape(len(points), -1)


def bits_learnt(prior: Any, mass: Any) -> float:
    mean = prior @ mass
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.nansum(np.where(mass > 0, mass * np.log2(mass / mean), 0.0), axis=1)
    return float(prior @ each)


def capacity(mass: Any, rounds: int = 100) -> tuple[Any, float]:
    """Blahut and Arimoto's iteration: the prior it ends at, and a bound on every prior's bits.

    The bound is the largest divergence of a point's law from the mean law, at any prior at all.
    """
    prior = np.full(len(mass), 0.5 / len(mass))
    prior[[0, -1]] += 0.25
    for _ in range(rounds):
        mean = prior @ mass
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.nansum(np.where(mass > 0, mass * np.log2(mass / mean), 0.0), axis=1)
        prior = prior * 2**each
        prior /= prior.sum()
    return prior, float(each.max())


def segment() -> tuple[Any, float, int]:
    return np.arange(-CELLS, CELLS + 1)[:, None], float(CELLS**2), 1


def two_levels() -> tuple[Any, float, int]:
    return FEW * np.eye(2, dtype=int), FEW**2 / 2, 1


def two_levels_and_none() -> tuple[Any, float, int]:
    points = np.vstack([FEW * np.eye(2, dtype=int), np.zeros((1, 2), int)])
    return points, FEW**2 / 2, 2


def number_and_flag() -> tuple[Any, float, int]:
    numbers = [(value, 0) for value in range(-FEW, FEW + 1, 2)]
    return np.array([*numbers, (0, FEW)]), 1.25 * FEW**2, 2


@pytest.mark.heavy
@pytest.mark.parametrize("cell", [segment, two_levels, two_levels_and_none, number_and_flag])
@pytest.mark.parametrize("bits", [0.1, 0.5, 1.5])
def test_no_prior_learns_more_than_the_bits(cell: Callable[[], Any], bits: float) -> None:
    points, spread, freedom = cell()
    places = points.shape[1]
    variance = grid_variance_for(bits, spread=spread, freedom=freedom, places=places)
    assert grid_bits_through(variance, spread=spread, freedom=freedom, places=places) <= bits
    mass = channel(points, variance)
    draw = simulation.generator(3)
    priors = [*draw.dirichlet(np.full(len(points), 0.3), 20), np.full(len(points), 1 / len(points))]
    ends = np.zeros(len(points))
    ends[[0, -1]] = 0.5
    optimum, most = capacity(mass)
    learnt = [bits_learnt(prior, mass) for prior in [*priors, ends, optimum]]
    assert max(learnt) <= most <= bits
    if bits < 1:  # weak noise is where no prior is close to a normal one
        assert max(learnt) >= 0.7 * bits


def test_the_variance_is_the_closed_form() -> None:
    for bits, spread, freedom in [(0.5, 64.0, 1), (0.2, 1e12, 2), (3.0, 5e11, 4)]:
        variance = grid_variance_for(bits, spread=spread, freedom=freedom, places=freedom)
        closed = (spread + freedom / 12) / (freedom * (2 ** (2 * bits / freedom) - 1))
        assert variance == pytest.approx(closed, rel=1e-9)
    assert grid_variance_for(60.0, spread=64.0) == 1.0


def test_a_vanishing_grid_has_the_continuous_bound() -> None:
    assert grid_bits_through(1e12, spread=1e12) == pytest.approx(0.5, rel=1e-11)


def prepared(
    schema: Schema = MIXED, kind: type[AdditiveNoise] = AdditiveNoise, **options: Any
) -> PreparedRows:
    grid = Grid.of(schema)
    shape = Shape(schema.dimension, grid.steps_per_unit, grid.exponent)
    options = {"guarantee": MIDP(0.5), **options}
    return kind(**options).prepare(schema, shape, simulation.entropy(1))


def deviations(ready: PreparedRows) -> dict[str, float]:
    law = ready.noise_model
    assert isinstance(law, AdditiveRows)
    return dict(zip(MIXED.names, np.sqrt(law.variances), strict=True))


def test_each_column_has_the_noise_that_its_own_cells_need() -> None:
    found = deviations(prepared())
    assert found["intercept"] == 0
    assert found["pay"] == pytest.approx(1.0, rel=1e-9)  # 1/(2^{2·0.5} − 1), over half the range
    assert found["well"] == pytest.approx(1.0, rel=1e-9)
    assert found["smoker=yes"] == pytest.approx(((1 / 2) / 2 / (2**0.5 - 1)) ** 0.5, rel=1e-9)
    assert found["ward=1"] == pytest.approx(((2 / 3) / 2 / (2**0.5 - 1)) ** 0.5, rel=1e-9)
    assert found["age"] == pytest.approx((1.25 / 2 / (2**0.5 - 1)) ** 0.5, rel=1e-9)


def test_the_certificate_shows_bits_and_what_they_imply() -> None:
    ready = prepared()
    assert ready.account.holds == ready.account.asked == MIDP(0.5)
    assert ready.parameters["bits"] <= 0.5
    found = deviations(ready)
    mu = max(2.0, 2**0.5 / found["smoker=yes"], 5**0.5 / found["age"])
    assert ready.parameters["mu"] == pytest.approx(mu, rel=1e-9)
    assert ready.parameters["rho"] == pytest.approx(mu**2 / 2, rel=1e-9)
    assert ready.account.profile is not None
    assert ready.account.profile.delta(1.0) < 1


@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 1e-6), ZCDP(0.1), ApproxDP(40.0, 1e-6)])
def test_other_guarantees_are_calibrated_on_the_profile(guarantee: Any) -> None:
    ready = prepared(guarantee=guarantee)
    profile = ready.account.profile
    assert ready.account.holds == guarantee
    assert profile is not None
    if isinstance(guarantee, ApproxDP):
        assert 0.99 * guarantee.delta <= profile.delta(guarantee.epsilon) <= guarantee.delta
    else:
        assert ready.parameters["rho"] == pytest.approx(guarantee.rho, rel=1e-9)


@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 1e-6), ZCDP(0.1)])
def test_the_widest_change_of_a_cell_is_hidden_by_its_noise(guarantee: Any) -> None:
    ready = prepared(guarantee=guarantee)
    found = deviations(ready)
    # From one end to the other; from one level to another; a number and its flag.
    widest = {"pay": 2.0, "ward=1": 2**0.5, "smoker=yes": 1.0, "age": 5**0.5}
    for name, moved in widest.items():
        assert moved / found[name] <= ready.parameters["mu"] * (1 + 1e-9)


def test_the_target_may_be_published() -> None:
    ready = prepared(target="pay", y_public=True)
    assert deviations(ready)["pay"] == 0
    assert ready.parameters["public"] == "pay"
    assert any("'pay'" in note and "nothing protects" in note for note in ready.account.notes)
    assert deviations(prepared(target="pay"))["pay"] > 0


def test_the_paper_has_one_variance_and_a_raw_target() -> None:
    ready = prepared(kind=PublishedAdditiveNoise, target="pay")
    found = deviations(ready)
    noised = [value for name, value in found.items() if name not in {"intercept", "pay"}]
    assert noised == pytest.approx([1.0] * len(noised))
    assert found["pay"] == 0
    holds = ready.account.holds
    assert isinstance(holds, MIDP)
    # One flag at this variance leaks less than was asked for, a number with its flag more.
    assert holds.bits == pytest.approx(math.log2(1 + 1.25 / 2), rel=1e-6)
    assert any("does not keep" in note for note in ready.account.notes)
    numbers = Schema(a=(0, 1), b=(0, 1), y=(0, 1))
    plain = prepared(numbers, PublishedAdditiveNoise, target="y").account.holds
    assert isinstance(plain, MIDP)
    assert plain.bits == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        ({"guarantee": PureDP(1.0)}, ValueError, "delta=1e-6"),
        ({"guarantee": GDP(1.0)}, TypeError, "ZCDP"),
        ({"guarantee": ZCDP(1.0), "kind": PublishedAdditiveNoise}, TypeError, "bits only"),
        ({"guarantee": MIDP(1e-14)}, ValueError, "within reach"),
        ({"neighbours": "row_l2"}, ValueError, "element"),
        ({"y_public": True}, TypeError, "target"),
        ({"y_public": 1}, TypeError, "True or False"),
        ({"target": "nobody"}, ValueError, "target"),
        ({"calibration": "paper"}, TypeError, "calibration"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    options: dict[str, Any], error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word):
        prepared(**options)


def test_columns_that_hang_together_are_refused() -> None:
    with refused("schema", "AdditiveNoise", "derived"):
        prepared(Schema(a=(0, 1), b=(0, 1), derived=["a*b"]))
    with refused("schema", "AdditiveNoise", "row_norm"):
        prepared(Schema(a=(0, 1), b=(0, 1), row_norm=0.5))
    with refused("schema", "AdditiveNoise", "to protect"):
        prepared(Schema(a=(0, 1)), target="a", y_public=True)


def released(ready: PreparedRows, rows: Any, seed: int = 5) -> Any:
    batch = ready.release(rows, simulation.entropy(seed))
    return np.column_stack([column.to_numpy() for column in batch.columns])


@pytest.mark.heavy
def test_the_noise_is_normal_with_its_law_and_independent() -> None:
    ready = prepared()
    count = 40_000
    rows = np.zeros((MIXED.dimension, count))
    rows[MIXED.names.index("ward=1")] = Grid.of(MIXED).steps_per_unit  # as a row is in one ward
    values = released(ready, rows)
    own = [feature for feature in MIXED.features if feature.factors]
    centre = np.array([float(feature.centre) + (feature.name == "ward=1") for feature in own])
    width = np.array([float(feature.half_width) for feature in own])
    expected = np.array([deviations(ready)[feature.name] for feature in own])
    noise = (values - centre) / width / expected
    error = 1 / math.sqrt(count)
    assert np.abs(noise.mean(0)).max() <= ALLOWED * error
    assert np.abs((noise**2).mean(0) - 1).max() <= ALLOWED * math.sqrt(2) * error
    assert np.abs((noise**4).mean(0) - 3).max() <= ALLOWED * math.sqrt(96) * error
    correlations = noise.T @ noise / count - np.eye(len(own))
    np.fill_diagonal(correlations, 0)
    assert np.abs(correlations).max() <= ALLOWED * error
    assert np.abs((noise[1:] * noise[:-1]).mean(0)).max() <= ALLOWED * error


def test_the_same_sum_of_cell_and_noise_is_the_same_number() -> None:
    """What leaves is a function of cell + noise, so that no low-order bits of the cell do."""
    schema = Schema(a=(0.1, 0.7), intercept=True)
    ready = prepared(schema)
    rows = np.zeros((2, 4000))
    rows[1] = np.arange(4000) - 2000
    values = released(ready, rows)[:, 0]
    step = float(schema.features[1].half_width) / Grid.of(schema).steps_per_unit
    sums = np.rint((values - float(schema.features[1].centre)) / step)
    again = sums * step + float(schema.features[1].centre)
    assert np.array_equal(values, again)


def integers(cells: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the integers that a row is released as, noise removed."""
    from dplinear.exact.grid import round_to_grid
    from dplinear.schema.encoding import Encoder

    grid = Grid.of(MIXED)
    encoder = Encoder(MIXED, float(grid.steps_per_unit))
    batch = pa.RecordBatch.from_pydict({name: [value] for name, value in cells.items()})
    columns = {name: batch.column(name) for name in MIXED.columns}
    rows = round_to_grid(grid, encoder.columns(columns, 1), encoder.missing)
    monkeypatch.setattr(
        "dplinear.noise.discrete.gaussian", lambda _, size, **__: np.zeros(size, np.int64)
    )
    values = released(prepared(), rows)[0]
    own = [feature for feature in MIXED.features if feature.factors]
    return np.array(
        [
            round((value - float(f.centre)) / float(f.half_width) * grid.steps_per_unit)
            for value, f in zip(values, own, strict=True)
        ]
    )


DIAMETERS = {"age": 5**0.5, "smoker": 2**0.5, "ward": 2**0.5, "well": 2.0, "pay": 2.0}
CHANGES: dict[str, list[Any]] = {
    "age": [0, 99, None, 10**12, -5],
    "smoker": ["yes", "perhaps", None, ""],
    "ward": [2, 3, 99, None],
    "well": [True, False, None],
    "pay": [0.0, 5000.0, 1e300, -1e300, math.nan, math.inf, None],
}


@pytest.mark.parametrize("name", MIXED.columns)
def test_one_cell_moves_its_own_columns_by_its_diameter_at_the_most(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"age": 30, "smoker": "no", "ward": 1, "well": True, "pay": 1000.0}
    own = [feature.term.label == name for feature in MIXED.features if feature.factors]
    seen = [integers(row | {name: value}, monkeypatch) for value in CHANGES[name]]
    furthest = 0.0
    for one in seen:
        for other in seen:
            moved = (one - other) / Grid.of(MIXED).steps_per_unit
            assert not moved[~np.array(own)].any()
            furthest = max(furthest, float(np.linalg.norm(moved)))
    assert furthest <= DIAMETERS[name] * (1 + 1e-12)
    if name != "age":  # whose flag and bounds are never that far apart at once
        assert furthest == pytest.approx(DIAMETERS[name])
