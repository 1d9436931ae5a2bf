"""Joined releases: sums of matrices, of variances and of guarantees, or a refusal in words."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

import dplinear as dpl
from dplinear.analyst.noise_models.matrices import SymmetricGaussian, WishartNoise
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.joined_certificate import delta_at, gaussian_profile
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arguments import ArgumentTypeError
from dplinear.curator.gates.measured import filled_relief, side_names
from dplinear.exact.grid import moments_shape
from dplinear.mechanisms.moments.analyze_gauss import AnalyzeGauss
from dplinear.noise import simulation
from dplinear.privacy.guarantees import ZCDP, ApproxDP, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.gaussian import GridGaussian
from dplinear.report import release as report
from refusals import refused

SCHEMA = dpl.Schema({"x": (-1, 1), "y": (0, 3)})
BY_ID = SCHEMA.with_unit("id")
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
FALSE_ALARM = 1e-6


def table(seed: int, rows: int = 200) -> pa.Table:
    draw = simulation.generator(seed)
    x = draw.uniform(-1, 1, rows)
    ids = draw.integers(0, rows // 3, rows)
    y = np.clip(1.5 + x + draw.normal(0, 0.2, rows), 0, 3)
    return pa.table({"x": x, "y": y, "id": [f"p{i}" for i in ids]})


def released(seed: int, schema: dpl.Schema = SCHEMA, **options: Any) -> MomentsRelease:
    found: MomentsRelease = dpl.release_moments(table(seed), schema, **(BUDGET | options))
    return found


def oracle_delta(epsilon: float, mu: float) -> float:
    """Return δ(ε) of two normal laws, μ deviations apart, in 60 digits."""
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return float(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))


def oracle_mu(release: MomentsRelease, *, replace_one: bool = False) -> float:
    """Return μ by the definition: a row of three cells in [−1, 1] moves the matrix by 3."""
    moved = 3 * (math.sqrt(2) if replace_one else 1)
    model: Any = release.noise_model
    return moved / math.sqrt(model.diagonal)


# Sums.


def weighted(seed: int, rows_per_unit: int | None = None) -> MomentsRelease:
    draw, rows = simulation.generator(seed), 3000
    x = draw.uniform(-1, 1, rows)
    w = np.where(draw.uniform(0, 1, rows) < 0.3, 2.0, 0.2)
    y = np.where(draw.uniform(0, 1, rows) < 0.1, np.nan, 1.5 + x)
    own = pa.table({"x": x, "y": y, "w": w, "id": [f"{seed} {i // 3}" for i in range(rows)]})
    schema = dpl.Schema({"x": (-1, 1), "y": (0, 3)}, weight=("w", 0, 2)).leaving_out()
    schema = schema if rows_per_unit is None else schema.with_unit("id")
    return dpl.release_moments(
        own, schema, guarantee=ZCDP(1e6), rows_per_unit=rows_per_unit, request=f"{seed}"
    )


@pytest.mark.parametrize("counted", [(None, None), (1, 3)])
def test_sums_beside_the_matrices_add_up(counted: tuple[int | None, int | None]) -> None:
    """With next to no noise: squared weights of joined tables, in the scale of the largest k."""
    parts = [weighted(seed, k) for seed, k in enumerate(counted)]
    joined = dpl.join(parts, disjoint=True)
    shares = [(k or 1) / max(each or 1 for each in counted) for k in counted]
    said: list[Any] = [part.certificate.parameters for part in parts]
    for name, power in (("squared_weights", 2), ("rows_left_out", 1)):
        for at in (name, f"{name}_noise"):
            terms = [share**power * each[at] for share, each in zip(shares, said, strict=True)]
            total = math.hypot(*terms) if at != name else math.fsum(terms)
            assert joined.certificate.parameters[at] == pytest.approx(total, rel=1e-12)
    assert joined.design_effect == pytest.approx(
        sum(s * s * each["squared_weights"] for s, each in zip(shares, said, strict=True))
        / joined.weight,
        rel=1e-3,
    )
    assert joined.design_effect < 1
    shared = dpl.join(parts, disjoint=False)  # the same rows, perhaps: the bound
    assert "squared_weights" not in shared.certificate.parameters
    assert shared.design_effect == 1


def test_matrices_variances_and_public_rows_add_up() -> None:
    parts = [released(i, neighbours="replace", epsilon=0.5 + i) for i in range(3)]
    joined = dpl.join(parts, disjoint=True)
    expected = [
        [math.fsum(part.values[i, j] for part in parts) for j in range(3)] for i in range(3)
    ]
    assert joined.values == pytest.approx(np.array(expected), rel=1e-15)
    assert joined.rows == 600
    models: Any = [part.noise_model for part in parts]
    assert isinstance(joined.noise_model, SymmetricGaussian)
    assert joined.noise_model.diagonal == math.fsum(model.diagonal for model in models)
    assert joined.noise_model.off_diagonal == math.fsum(model.off_diagonal for model in models)
    backwards = dpl.join(parts[::-1], disjoint=True)
    assert np.array_equal(joined.values, backwards.values)
    assert joined.certificate.request == backwards.certificate.request
    assert dpl.join(parts, disjoint=False).certificate.request != joined.certificate.request


def test_the_spread_of_joined_releases_is_what_their_noise_model_says() -> None:
    truth = dpl.join([released(i, epsilon=1e9) for i in (1, 2)], disjoint=True).values
    squares: list[float] = []
    for seed in range(50):
        with simulation.door(seed):
            one = released(1)
        with simulation.door(10_000 + seed):
            two = released(2, epsilon=0.4)
        joined = dpl.join([one, two], disjoint=True)
        model: Any = joined.noise_model
        noise = np.square(joined.values - truth)
        squares.extend((np.diag(noise) / model.diagonal).tolist())
        squares.extend((noise[np.triu_indices(3, 1)] / model.off_diagonal).tolist())
    assert joined.certificate.simulated
    law = chi2(len(squares))
    assert law.ppf(FALSE_ALARM / 2) < sum(squares) < law.isf(FALSE_ALARM / 2)


def test_wishart_noise_of_one_scale_has_the_degrees_of_all() -> None:
    parts = [released(i, mechanism="additive_wishart") for i in range(2)]
    joined = dpl.join(parts, disjoint=True)
    assert isinstance(joined.noise_model, WishartNoise)
    models: Any = [part.noise_model for part in parts]
    assert joined.noise_model == WishartNoise(2 * models[0].degrees, models[0].scale)
    assert joined.certificate.holds == ApproxDP(1.0, 1e-6)
    together = dpl.join(parts, disjoint=False).certificate
    assert together.holds == ApproxDP(2.0, 2e-6)  # nothing better is known of their noise
    assert together.curve == ()
    other = released(3, mechanism="additive_wishart", epsilon=2.0)
    with refused("releases", "join", "Wishart noise of one scale"):
        dpl.join([parts[0], other], disjoint=True)


# Units: a unit counts as at most so many rows, in all tables together.


def test_units_of_tables_with_other_caps_are_brought_to_one_scale() -> None:
    caps = (1, 3)
    parts = [released(7 + k, BY_ID, rows_per_unit=k, epsilon=1e9) for k in caps]
    for disjoint, most in ((True, 3), (False, 4)):
        joined = dpl.join(parts, disjoint=disjoint)
        assert joined.certificate.rows_per_unit == most
        rows = np.zeros((3, 3))
        for k in caps:  # by the definition: each row counts min(1, k/m) of a row
            data = table(7 + k)
            cells = np.column_stack([np.ones(200), data["x"], np.array(data["y"]) / 1.5 - 1])
            ids = np.array(data["id"])
            counts = np.array([np.sum(ids == each) for each in ids])
            rows += cells.T * np.minimum(1, k / counts) @ cells
        assert joined.values * most == pytest.approx(rows, rel=1e-3)
        scales = [k / most for k in caps]
        models: Any = [part.noise_model for part in parts]
        law: Any = joined.noise_model
        assert law.diagonal == pytest.approx(
            sum(s**2 * model.diagonal for s, model in zip(scales, models, strict=True))
        )
        assert f"at most {most} rows" in joined.certificate.protects


def test_standard_errors_allow_for_people_in_every_table() -> None:
    """The same rows in both tables tell no more than those of one do."""
    for schema in (SCHEMA, BY_ID):
        twins = [dpl.release_moments(table(5), schema, epsilon=1e9, delta=1e-6) for _ in "ab"]
        alone = twins[0].regress("y").intervals()
        for method in ("delta", "bootstrap"):
            found = dpl.join(twins, disjoint=False).regress("y").intervals(method=method)
            assert found.standard_errors == pytest.approx(alone.standard_errors, rel=0.1)
        apart = dpl.join(twins, disjoint=True).regress("y").intervals()
        assert apart.standard_errors == pytest.approx(alone.standard_errors / math.sqrt(2), rel=0.1)


# Guarantees.


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_disjoint_tables_keep_the_worst_of_their_guarantees(neighbours: str) -> None:
    asked = ((1.0, 1e-6), (0.5, 1e-5), (2.0, 1e-9))
    parts = [
        released(i, epsilon=e, delta=d, neighbours=neighbours) for i, (e, d) in enumerate(asked)
    ]
    found = dpl.join(parts, disjoint=True).certificate
    mus = [oracle_mu(part, replace_one=neighbours == "replace") for part in parts]
    for epsilon, delta in found.curve:
        worst = max(oracle_delta(epsilon, mu) for mu in mus)
        assert worst * (1 - 1e-9) <= delta <= worst * 1.001 + 1e-20
    holds = found.holds
    assert isinstance(holds, ApproxDP)
    worst = max(oracle_delta(holds.epsilon, mu) for mu in mus)
    assert holds.epsilon == 2.0
    assert worst <= holds.delta <= 2 * worst


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_tables_that_share_people_compose(neighbours: str) -> None:
    parts = [released(i, epsilon=e, neighbours=neighbours) for i, e in enumerate((1.0, 0.5, 2.0))]
    found = dpl.join(parts, disjoint=False).certificate
    mus = [oracle_mu(part, replace_one=neighbours == "replace") for part in parts]
    mu = math.hypot(*mus)
    for epsilon, delta in found.curve:
        exact = oracle_delta(epsilon, mu)
        assert exact * (1 - 1e-9) <= delta <= exact * 1.001 + 1e-20
    holds = found.holds
    assert isinstance(holds, ApproxDP)
    assert holds.delta == 1e-6
    assert oracle_delta(holds.epsilon, mu) <= 1e-6 <= oracle_delta(holds.epsilon * 0.999, mu)
    assert 2.0 < holds.epsilon < 2.5  # adding them up gives 3.5


def test_twelve_months_cost_less_than_twelve_times_one() -> None:
    months = [released(i) for i in range(12)]
    once = dpl.join(months, disjoint=True).certificate
    assert once.holds == once.asked == ApproxDP(1.0, 1e-6)
    year: Any = dpl.join(months, disjoint=False).certificate.holds
    assert round(year.epsilon, 1) == 3.9  # as docs/how-to/next-month.md says


@pytest.mark.parametrize("epsilon", [1.0, 1e-3])  # of the second no certificate has a curve
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_sums_beside_the_matrix_compose_with_it(epsilon: float, neighbours: str) -> None:
    columns: Any = {"x": {"low": -1, "high": 1, "missing": "leave_out"}, "y": (0, 3)}
    schemas = [dpl.Schema(columns)]
    if neighbours == "add_remove":
        schemas.append(dpl.Schema(columns, unit="id", weight=("w", 0, 2)))
    for schema in schemas:
        asked: Any = {"epsilon": epsilon, "delta": 1e-9, "neighbours": neighbours}
        whole = [table(i).append_column("w", pa.array(np.ones(200))) for i in (1, 2)]
        parts = [dpl.release_moments(each, schema, **asked) for each in whole]
        model = AnalyzeGauss(guarantee=ApproxDP(epsilon, 1e-9), neighbours=Neighbours(neighbours))
        shape, side = moments_shape(schema), side_names(schema)
        true = model.prepare_with(shape, side, filled_relief(schema)).account.profile
        assert isinstance(true, GridGaussian)
        found = gaussian_profile(parts[0].certificate, 3)
        assert found is not None
        assert true.mu * (1 - 1e-12) <= found.mu <= true.mu * (1 + 1e-6)
        assert found.inverse_variance >= true.inverse_variance * (1 - 1e-12)
        holds = dpl.join(parts, disjoint=False).certificate.holds
        assert isinstance(holds, ApproxDP)
        assert oracle_delta(holds.epsilon, math.sqrt(2) * true.mu) <= holds.delta
        assert holds.epsilon < 1.6 * epsilon


def test_guarantees_of_other_kinds() -> None:
    parts = [
        released(i, epsilon=None, delta=None, guarantee=ZCDP(r)) for i, r in enumerate((0.1, 0.3))
    ]
    assert dpl.join(parts, disjoint=True).certificate.holds == ZCDP(0.3)
    total: Any = dpl.join(parts, disjoint=False).certificate.holds
    assert 0.4 <= total.rho < 0.4 * (1 + 1e-14)
    mixed = [parts[1], released(5)]
    mus = [oracle_mu(part) for part in mixed]
    worst: Any = dpl.join(mixed, disjoint=True).certificate.holds
    assert max(oracle_delta(worst.epsilon, mu) for mu in mus) <= worst.delta <= 1e-6
    both: Any = dpl.join(mixed, disjoint=False).certificate.holds
    assert oracle_delta(both.epsilon, math.hypot(*mus)) <= both.delta <= 1e-6
    pure = [replace(released(i).certificate, holds=PureDP(1.0), curve=()) for i in range(2)]
    assert delta_at(pure[0], 0.5) == 1.0
    assert delta_at(pure[0], 1.0) == 0.0


def test_years_of_months_join_as_their_months_do() -> None:
    months = [released(i) for i in range(4)]
    halves = [dpl.join(months[:2], disjoint=False), dpl.join(months[2:], disjoint=False)]
    nested, flat = dpl.join(halves, disjoint=False), dpl.join(months, disjoint=False)
    one: Any = nested.certificate.holds
    other: Any = flat.certificate.holds
    assert one.epsilon == pytest.approx(other.epsilon, rel=1e-9)
    assert nested.certificate.parts == flat.certificate.parts
    assert nested.values == pytest.approx(flat.values, rel=1e-14)
    apart = dpl.join(halves, disjoint=True).certificate
    assert apart.holds == halves[0].certificate.holds
    assert apart.parameters["most_tables"] == 2
    assert flat.certificate.parameters["most_tables"] == 4


def test_a_profile_that_its_own_curve_refutes_is_not_used() -> None:
    held = released(1).certificate
    assert gaussian_profile(held, 3) is not None
    louder = {**held.parameters, "sigma": 2 * float(held.parameters["sigma"] or 0)}
    forged = replace(held, parameters=louder)
    assert gaussian_profile(forged, 3) is None
    assert gaussian_profile(replace(held, mechanism="another"), 3) is None
    assert gaussian_profile(replace(held, parameters={}), 3) is None


# Certificates, files and pages.


def test_a_joined_certificate_names_its_parts_and_is_saved(tmp_path: Path) -> None:
    parts = [released(i, dataset=f"site {i}", request=f"visit {i}") for i in range(2)]
    joined = dpl.join(parts, disjoint=True)
    listed = [(part.request, part.dataset) for part in joined.certificate.parts]
    assert listed == [("visit 0", "site 0"), ("visit 1", "site 1")]
    assert "visit 1 of site 1" in str(joined.certificate)
    assert "no row is in two of them" in " ".join(joined.certificate.notes)
    joined.save(tmp_path / "joined.json")
    again = dpl.load(tmp_path / "joined.json", kind="moments")
    assert again.certificate == joined.certificate
    assert np.array_equal(again.values, joined.values)
    assert str(again.regress("y").summary()) == str(joined.regress("y").summary())
    page = report.release_page(joined)
    assert "visit 1" in page
    wrongs: list[Any] = [[{}], [1], "x", [{"request": "r", "dataset": None, "holds": 1}]]
    for wrong in wrongs:
        with pytest.raises((ValueError, TypeError)):
            Certificate.from_dict(joined.certificate.to_dict() | {"parts": wrong})


def test_a_page_finds_the_joined_releases_in_their_ledger(tmp_path: Path) -> None:
    ledger = dpl.open_ledger(tmp_path / "budget.db", create=True)
    ledger.declare("d", ZCDP(1.0))
    asked: dict[str, Any] = {"epsilon": None, "delta": None, "guarantee": ZCDP(0.1), "dataset": "d"}
    parts = [released(i, ledger=ledger, **asked) for i in (1, 2)]
    page = report.release_page(dpl.join(parts, disjoint=False), ledger=ledger)
    assert "Not in this ledger" not in page
    assert page.count(", this one") == 2
    other = dpl.join([*parts, released(3, **asked)], disjoint=False)
    assert "Not in this ledger" in report.release_page(other, ledger=ledger)


def test_equal_datasets_stay_on_the_certificate() -> None:
    assert (
        dpl.join([released(i, dataset="d") for i in (1, 2)], disjoint=True).certificate.dataset
        == "d"
    )


def test_disjoint_tables_of_one_dataset_say_what_that_rests_on() -> None:
    def notes(*datasets: str | None, disjoint: bool = True) -> str:
        parts = [released(i, BY_ID, dataset=name) for i, name in enumerate(datasets)]
        return " ".join(dpl.join(parts, disjoint=disjoint).certificate.notes)

    assert "several are of one dataset" in notes("d", "d")
    assert "the same 'id' is in two of them" in notes("d", "e", "d")
    for apart in (notes("d", "e"), notes(None, None), notes("d", "d", disjoint=False)):
        assert "one dataset" not in apart


# Refusals.


def test_what_cannot_be_joined_is_refused_in_words() -> None:
    one, two = released(1), released(2)
    with pytest.raises(TypeError, match="disjoint"):
        dpl.join([one, two])  # type: ignore[call-overload]
    with refused("disjoint", "join", kind=dpl.ArgumentError.__subclasses__()[0]):
        dpl.join([one, two], disjoint="yes")  # type: ignore[call-overload]
    with refused("releases", "join", "two or more"):
        dpl.join([one], disjoint=True)
    with refused("releases", "join", "of different requests"):
        dpl.join([one, two, one], disjoint=True)
    with refused("releases", "join", "of different requests"):
        dpl.join([dpl.join([one, two], disjoint=True), two], disjoint=False)
    for other in (
        dpl.Schema({"x": (-1, 2), "y": (0, 3)}),
        dpl.Schema({"y": (0, 3), "x": (-1, 1)}),
        dpl.Schema({"x": (-1, 1), "y": (0, 3)}, intercept=False),
        dpl.Schema({"x": (-1, 1), "y": (0, 3)}, row_norm=1.2),
        BY_ID,
    ):
        with refused("releases", "join", "of one schema"):
            dpl.join([one, released(3, other)], disjoint=True)
    with refused("releases", "join", "of one neighbour relation"):
        dpl.join([one, released(3, neighbours="replace")], disjoint=True)
    with refused("releases", "join", "of one unit of privacy"):
        foreign = replace(two.certificate, unit="id", rows_per_unit=1)
        dpl.join([one, replace(two, certificate=foreign)], disjoint=True)
    with refused("releases", "join", "a proved guarantee"):
        unproved = replace(two.certificate, holds=None)
        dpl.join([one, replace(two, certificate=unproved)], disjoint=True)
    with refused("releases", "join", "of Gaussian noise"):
        dpl.join([released(i, mechanism="sketch") for i in range(2)], disjoint=True)


def test_models_are_told_to_use_moments() -> None:
    models = [dpl.release_model(table(i), SCHEMA, "y", **BUDGET) for i in range(2)]
    with refused("releases", "join", kind=ArgumentTypeError, hint="release_moments of each table"):
        dpl.join(models, disjoint=True)
    with refused("releases", "join", "list of two or more", kind=ArgumentTypeError):
        dpl.join(released(1), disjoint=True)  # type: ignore[call-overload]
