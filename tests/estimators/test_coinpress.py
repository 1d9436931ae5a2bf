"""Private means and covariances as scikit-learn's users know them."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance

from dplinear.estimators import PrivateCovariance, PrivateMean
from dplinear.estimators.coinpress import inverse
from dplinear.ledger import tally
from dplinear.noise import simulation
from dplinear.privacy import ZCDP

from .test_check_estimator import REFUSALS, may_skip, statuses

KINDS: list[Any] = [PrivateMean, PrivateCovariance]
SILENT: dict[str, Any] = {"epsilon": None, "delta": None, "rho": 2.0**39, "neighbours": "replace"}
REFUSED = {name: REFUSALS[name] for name in REFUSALS if "supervised" not in name}


def rows(count: int = 600, seed: int = 0) -> Any:
    mixed = [[1.0, 0.4, 0.0], [0.0, 30.0, 9.0], [0.0, 0.0, 0.01]]
    return simulation.generator(seed).uniform(-1, 1, (count, 3)) @ mixed + [5, -80, 0.3]


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_would_leak_is_not_done(kind: Any) -> None:
    with simulation.door(0):
        found = statuses(kind(bounds=(-10, 10), weight_bound=5), REFUSED)
    assert found["failed"] == set()
    assert found["xfail"] == set(REFUSED)
    assert found["skipped"] <= may_skip()
    assert len(found["passed"]) > 30


@pytest.mark.parametrize("centred", [False, True])
def test_without_noise_it_is_scikit_learns_covariance(centred: bool) -> None:
    """Uniform rows are never clipped: from wide bounds the same numbers, but for the grid."""
    X = rows() - rows().mean(axis=0) if centred else rows()
    mine = PrivateCovariance(bounds=(-1e6, 1e6), assume_centered=centred, **SILENT).fit(X)
    theirs = EmpiricalCovariance(assume_centered=centred).fit(X)
    scale = X.std(axis=0)
    square = np.outer(scale, scale)
    np.testing.assert_allclose(mine.covariance_ / square, theirs.covariance_ / square, atol=1e-4)
    np.testing.assert_allclose(mine.location_ / scale, theirs.location_ / scale, atol=1e-4)
    np.testing.assert_allclose(
        mine.get_precision() * square, theirs.get_precision() * square, rtol=1e-2, atol=1e-2
    )
    other = rows(50, seed=1)
    np.testing.assert_allclose(mine.mahalanobis(other), theirs.mahalanobis(other), rtol=0.02)
    assert mine.score(other) == pytest.approx(theirs.score(other), rel=0.02)
    for norm in ("frobenius", "spectral"):
        for scaling in (False, True):
            for squared in (False, True):
                options: dict[str, Any] = {"norm": norm, "scaling": scaling, "squared": squared}
                asked = np.diag([1.0, 2.0, 3.0])
                mine.covariance_ = theirs.covariance_
                expected = theirs.error_norm(asked, **options)
                assert mine.error_norm(asked, **options) == pytest.approx(expected)


def test_without_noise_the_mean_is_the_mean() -> None:
    X = rows()
    model = PrivateMean(bounds=(-1e6, 1e6), **SILENT).fit(X)
    np.testing.assert_allclose((model.mean_ - X.mean(axis=0)) / X.std(axis=0), 0, atol=1e-4)
    assert (model.privacy_errors_ < 1e-4 * X.std(axis=0)).all()
    assert model.release_.names == ("x0", "x1", "x2")


def test_a_precision_that_is_not_kept_is_made_when_asked() -> None:
    model = PrivateCovariance(bounds=(-100, 100), store_precision=False, **SILENT).fit(rows())
    assert model.precision_ is None
    product = model.get_precision() @ model.covariance_
    np.testing.assert_allclose(product, np.eye(3), atol=1e-6)
    singular = np.diag([1e-12, 1e12, 0.0])
    np.testing.assert_allclose(np.diag(inverse(singular)), [1e12, 1e-12, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_guarantees_have_three_forms(kind: Any) -> None:
    X = rows(100)
    none: dict[str, Any] = {"epsilon": None, "delta": None}
    with tally() as spent:
        kind(bounds=(-100, 100), **none, rho=0.5).fit(X)
        kind(bounds=(-100, 100), **none, guarantee=ZCDP(0.5)).fit(X)
        kind(bounds=(-100, 100), epsilon=2.0, scale=[1.0, 20.0, 6.0], steps=3).fit(X)
    assert len(spent) == 3


class Untouchable:
    """A table that raises whatever is done with it."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)


WRONG: list[dict[str, Any]] = [
    {"bounds": None},
    {"bounds": (2, 1)},
    {"epsilon": None},
    {"epsilon": -1},
    {"guarantee": ZCDP(0.1)},
    {"rho": 0.5},
    {"rho": 0.5, "epsilon": None, "delta": None, "guarantee": ZCDP(0.1)},
    {"rho": -1, "epsilon": None, "delta": None},
    {"steps": 0},
    {"steps": 2.5},
    {"scale": -1},
    {"scale": "wide"},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", range(len(WRONG)))
def test_wrong_arguments_raise_before_the_table_is_touched(kind: Any, place: int) -> None:
    estimator = kind(**({"bounds": (-1, 1)} | WRONG[place]))
    with pytest.raises((TypeError, ValueError), match="parameter of"):
        estimator.fit(Untouchable())


def test_flags_are_flags() -> None:
    odd: Any = "yes"
    for model in (
        PrivateCovariance(bounds=(-1, 1), assume_centered=odd),
        PrivateCovariance(bounds=(-1, 1), store_precision=odd),
    ):
        with pytest.raises(TypeError, match="True or False"):
            model.fit(Untouchable())


@pytest.mark.parametrize("kind", KINDS)
def test_clones_keep_their_arguments(kind: Any) -> None:
    ledger = object()
    model = kind(bounds=[(-1, 1)], scale=[1.0], steps=4, rho=0.1, ledger=ledger)
    twin = clone(model)
    assert twin.ledger is ledger
    assert twin.get_params() == model.get_params()


def test_noise_that_hides_the_rows_is_said() -> None:
    with simulation.door(1), pytest.warns(UserWarning, match="noise is larger than the table"):
        PrivateMean(bounds=(-100, 100), epsilon=1e-3).fit(rows(3))
