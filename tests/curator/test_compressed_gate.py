"""The gates of models in a constraint set: their order, what they certify, what they refuse."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dplinear as dpl
from dplinear import tally
from dplinear.analyst.releases.constrained import ConstrainedRelease
from dplinear.arguments import ArgumentTypeError
from dplinear.convex.compression.projections import Projection
from dplinear.convex.losses import HuberLoss
from dplinear.convex.sets import Box, GroupBall, L1Ball, L2Ball, Moved, Polytope, Simplex
from dplinear.curator.examples import read_examples
from dplinear.curator.gates import constrained as compressed_gate
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, ApproxDP, PureDP
from dplinear.registry import CONSTRAINED
from refusals import refused

from .witnesses import Book

pytestmark = pytest.mark.heavy  # our own rules, whatever the versions

ROWS, FEATURES = 600, 12
PUBLIC: dict[str, Any] = {"row_norm": 2.0, "constraint": 2.0, "target_bounds": (-1.0, 3.0)}
LABELS: dict[str, Any] = {"row_norm": 2.0, "constraint": 2.0, "classes": ("no", "yes")}
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
BETWEEN: dict[str, Any] = {"projection": "gaussian", "dimension": 5}


def table(seed: int = 0) -> tuple[Any, Any]:
    """Return sparse rows in an array, and targets."""
    generator = simulation.generator(seed)
    X = generator.uniform(-1, 1, (ROWS, FEATURES)) * (
        generator.uniform(size=(ROWS, FEATURES)) < 0.4
    )
    return X, 1 + X @ np.linspace(-1, 1, FEATURES)


def words(y: Any) -> Any:
    return np.where(y > 1, "yes", "no")


def test_spending_comes_after_every_check_and_before_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book, seen = Book(), []

    def watched(*arguments: Any, **more: Any) -> Any:
        seen.append(len(book.requests))
        return read_examples(*arguments, **more)

    monkeypatch.setattr(compressed_gate, "read_examples", watched)
    X, y = table()
    release = dpl.release_model(
        X, target=y, **PUBLIC, **BUDGET, ledger=book, dataset="texts", request="a1"
    )
    assert seen == [1]
    (request,) = book.requests
    assert (request.request, request.dataset) == ("a1", "texts")
    assert request.mechanism == release.certificate.mechanism
    assert request.guarantee == release.certificate.holds == ApproxDP(1.0, 1e-6)
    assert request.parameters["loss"] == "squared"
    refusing = Book(refuse=True)
    with tally() as spent, pytest.raises(PermissionError):
        dpl.release_model(X, target=y, **PUBLIC, **BUDGET, ledger=refusing)
    assert seen == [1]
    assert len(spent) == 0


WRONG: list[dict[str, Any]] = [
    {"row_norm": 0},
    {"row_norm": None},
    {"constraint": -1.0},
    {"constraint": "small"},
    {"constraint": L1Ball(7)},
    {"constraint": lambda _: 3},
    {"loss": "magic"},
    {"loss": "hinge"},
    {"target_bounds": None},
    {"target_bounds": (3, 1)},
    {"classes": (0, 1)},
    {"epsilon": None},
    {"delta": 2},
    {"neighbours": "nobody"},
    {"projection": "magic"},
    {"projection": None, "dimension": 4},
    {"dimension": 0},
    {"seed": -1},
    {"clip": 100.0, "projection": "sparse"},
    {"mechanism": "magic"},
    {"mechanism": "noisy_gradient", "delta": None},
    {"lift": "magic"},
    {"intercept": -1.0},
    {"intercept": Decimal("sNaN")},
    {"expected_rows": 0},
    {"ledger": 3},
    {"dataset": ""},
    {"stepps": 3},
    {"steps": 0},
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_wrong_arguments_cost_nothing(wrong: dict[str, Any]) -> None:
    X, y = table()
    book = Book()
    with pytest.raises((TypeError, ValueError), match="parameter of"):
        dpl.release_model(X, target=y, **(PUBLIC | BUDGET | {"ledger": book} | wrong))
    assert not book.requests


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones(5), np.ones(5)),
        (np.ones((5, 0)), np.ones(5)),
        (np.ones((5, 2), complex), np.ones(5)),
        (np.ones((5, 2)), np.ones((5, 1))),
        (np.ones((5, 2)), np.ones(6)),
        (np.ones((5, 2)), np.ones(5, "datetime64[s]")),
        (sparse.csr_array(np.ones((5, 2), complex)), np.ones(5)),
        ("rows", np.ones(5)),
    ],
)
def test_wrong_tables_cost_nothing_and_no_number_is_quoted(X: Any, y: Any) -> None:
    book = Book()
    with pytest.raises((TypeError, ValueError), match="parameter of release_model") as caught:
        dpl.release_model(X, target=y, **PUBLIC, **BUDGET, ledger=book)
    assert not book.requests
    assert "5" not in str(caught.value)
    with refused("target", "release_model", "labels such as 'yes'"):
        dpl.release_model(
            np.ones((5, 2)), target=np.ones(5), **LABELS, **BUDGET, loss="hinge", ledger=book
        )
    assert not book.requests


def test_the_certificate_says_what_was_done() -> None:
    X, y = table()
    release = dpl.release_model(
        X, target=y, **PUBLIC, **BETWEEN, guarantee=ZCDP(0.5), seed=11, expected_rows=1000
    )
    certificate = release.certificate
    assert certificate.asked == certificate.holds == ZCDP(0.5)
    assert not certificate.simulated
    assert certificate.parameters["loss"] == "squared"
    assert release.rows is None
    assert release.projection is not None
    assert release.compressed is not None
    assert (release.projection["kind"], release.projection["seed"]) == ("gaussian", 11)
    assert release.constraint["radius"] == 2.0
    again = Projection("gaussian", 5, FEATURES, 11)
    residual = np.linalg.norm(again.forward(release.theta) - release.compressed)
    assert residual == pytest.approx(release.lift["residual"], abs=1e-12)
    assert np.abs(release.theta).sum() <= 2.0 * (1 + 1e-8)
    assert release.plan == {}  # no theorem of the paper's speaks of ρ
    approximate = dpl.release_model(X, target=y, **PUBLIC, **BETWEEN, **BUDGET, expected_rows=1000)
    wanted = approximate.plan["theorem_dimension"]
    assert isinstance(wanted, int)
    assert wanted > FEATURES  # as at any size that fits a machine
    assert approximate.plan["dimension"] == 5
    assert release.lift["gauge"] == pytest.approx(np.abs(release.theta).sum() / 2, abs=1e-9)


@pytest.mark.parametrize("more", [{}, {"delta": None}, BETWEEN], ids=str)
def test_the_number_of_rows_chooses_nothing_unless_it_is_public(more: dict[str, Any]) -> None:
    X, y = table()
    X, y = np.tile(X, (40, 1)), np.tile(y, 40)
    for neighbours, rows in (("add_remove", None), ("replace", None), ("add_remove", 100)):
        book = Book()
        asked = (
            PUBLIC
            | BUDGET
            | more
            | {"neighbours": neighbours, "expected_rows": rows, "ledger": book}
        )
        plans = [dpl.release_model(X[:n], target=y[:n], **asked).plan for n in (24_000, 40)]
        same = neighbours == "add_remove"
        told = [dict(request.parameters) for request in book.requests]
        assert (told[0] == told[1]) == same
        assert plans[0] == plans[1] or not same


def test_pure_guarantees_are_kept_as_such() -> None:
    X, y = table()
    release = dpl.release_model(X, target=y, **PUBLIC, epsilon=1.0)
    assert release.certificate.holds == PureDP(1.0)
    assert release.certificate.curve == () or release.certificate.curve[-1][0] < 1.0
    labels = words(y)
    release = dpl.release_model(
        X, target=labels, **LABELS, epsilon=1.0, loss="logistic", neighbours="replace"
    )
    assert release.certificate.holds == PureDP(1.0)
    assert release.rows == ROWS
    assert set(release.predict(X).tolist()) <= {"no", "yes"}


def test_labels_may_be_any_two_in_any_holder() -> None:
    X, y = table()
    yes = y > 1
    kinds: list[tuple[Any, Any]] = [
        ((0, 1), yes),
        ((False, True), yes),
        ((False, True), yes.astype(float)),
        ((0, 1), yes.astype(object)),
        ((7, 3), np.where(yes, 3, 7).astype(np.int8)),
        (("no", "yes"), words(y)),
        (("no", "yes"), words(y).astype("S")),
        (("maybe", "yes"), words(y).astype(object)),
    ]
    found = []
    for classes, labels in kinds:
        with simulation.door(9):
            asked = LABELS | {"classes": classes}
            found.append(dpl.release_model(X, target=labels, **asked, epsilon=1e6, loss="logistic"))
        assert found[-1].units.classes == classes
        assert np.array_equal(found[-1].theta, found[0].theta)
    assert np.mean(found[0].predict(X) == yes) > 0.8


def same(one: ConstrainedRelease, other: ConstrainedRelease) -> None:
    assert np.array_equal(one.theta, other.theta)
    assert one.projection == other.projection
    if one.compressed is not None and other.compressed is not None:
        assert np.array_equal(one.compressed, other.compressed)


HOLDERS = (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array)


@pytest.mark.parametrize(
    "more", [{}, BETWEEN, {"projection": "sparse", "dimension": 5, "intercept": True}], ids=str
)
@pytest.mark.parametrize("learner", ["frank_wolfe", "mirror_descent"])
def test_sparse_tables_give_the_same_bits_and_never_become_dense(
    more: dict[str, Any], learner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    asked = PUBLIC | BUDGET | more | {"mechanism": learner}
    with simulation.door(3):
        dense = dpl.release_model(X, target=y, **asked)
    assert dense.certificate.simulated
    for kind in HOLDERS:
        toarray = kind.toarray

        def watched(self: Any, *given: Any, toarray: Any = toarray, **named: Any) -> Any:
            assert 5 in self.shape, "made dense"  # what is projected may be
            return toarray(self, *given, **named)

        monkeypatch.setattr(kind, "toarray", watched)
    for kind in HOLDERS:
        with simulation.door(3):
            same(dense, dpl.release_model(kind(X), target=y, **asked))


SETS: list[Any] = [
    L2Ball,
    Simplex,
    lambda d: GroupBall(np.arange(d) // 3, 1.5),
    lambda d: Box(-np.full(d, 0.2), np.full(d, 0.3)),
    lambda d: Polytope(np.vstack([np.eye(d), -np.ones((1, d))])),
    lambda d: Moved(L1Ball(d), 0.5, np.full(d, 0.1)),
]


@pytest.mark.parametrize("constraint", SETS)
@pytest.mark.parametrize("more", [{"projection": None}, BETWEEN], ids=str)
def test_every_set_is_kept_to(constraint: Any, more: dict[str, Any]) -> None:
    X, y = table()
    with simulation.door(4):
        release = dpl.release_model(
            X, target=y, **(PUBLIC | BUDGET | more | {"constraint": constraint})
        )
    base = constraint(FEATURES)
    assert np.linalg.norm(base.project(release.theta) - release.theta) <= 1e-8
    assert release.constraint["set"] == base.name
    assert release._repr_html_()


APPROXIMATE = sorted(set(CONSTRAINED) - {"exponential"})


@pytest.mark.parametrize("learner", APPROXIMATE)
@pytest.mark.parametrize("loss", ["squared", HuberLoss(0.5), "logistic", "hinge"])
def test_every_learner_releases_or_refuses_before_the_spend(learner: str, loss: Any) -> None:
    X, y = table()
    book = Book()
    labelled = loss in {"logistic", "hinge"}
    asked = (LABELS if labelled else PUBLIC) | BUDGET | BETWEEN
    try:
        with simulation.door(5):
            release = dpl.release_model(
                X,
                target=words(y) if labelled else y,
                **asked,
                loss=loss,
                mechanism=learner,
                ledger=book,
            )
    except ValueError:
        assert not book.requests
        assert learner in {"objective_perturbation", "output_perturbation", "whitened"}
        return
    assert len(book.requests) == 1
    assert np.abs(release.theta).sum() <= 2.0 * (1 + 1e-8)
    assert release.certificate.mechanism == learner
    if isinstance(loss, HuberLoss):
        assert release.certificate.parameters["knee"] == 0.5


def test_auto_never_stands_for_noise_in_floating_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a learner not exact, whoever wants it would have to say so by its name."""
    X, y = table()
    book = Book()
    asked = {k: v for k, v in PUBLIC.items() if k != "constraint"} | BETWEEN
    ball: dict[str, Any] = {"constraint": L2Ball(12, 1.0), "epsilon": 1.0}
    with monkeypatch.context() as patch:
        patch.setattr(CONSTRAINED["output_perturbation"], "numerics", "idealised")
        with pytest.raises(ValueError, match=r"(?s)'mechanism' parameter of release_model .*delta"):
            dpl.release_model(X, target=y, **asked, **ball, ledger=book)
        assert not book.requests
        with simulation.door(5):
            named = asked | ball | {"mechanism": "output_perturbation"}
            release = dpl.release_model(X, target=y, **named)
        assert release.certificate.of_ideal


def test_auto_keeps_pure_epsilon_exactly_in_any_set() -> None:
    X, y = table()
    asked = {k: v for k, v in PUBLIC.items() if k != "constraint"} | BETWEEN
    with simulation.door(5):
        for constraint in (L2Ball(12, 1.0), L1Ball(12, 1.0)):
            found = dpl.release_model(X, target=y, **asked, constraint=constraint, epsilon=1.0)
            assert not found.certificate.of_ideal
            assert found.certificate.numerics == "exact"


def test_sparse_rows_for_a_learner_of_dense_ones_cost_nothing() -> None:
    X, y = table()
    book = Book()
    asked = PUBLIC | BUDGET | {"mechanism": "whitened", "ledger": book}
    with refused("data", "release_model", kind=ArgumentTypeError):
        dpl.release_model(sparse.csr_array(X), target=y, **asked, projection=None)
    assert not book.requests
    dpl.release_model(sparse.csr_array(X), target=y, **asked, projection="sparse", dimension=4)
    assert len(book.requests) == 1


@pytest.mark.parametrize("lift", ["carried", "gauge"])
def test_lifts_are_as_asked(lift: str) -> None:
    X, y = table()
    with simulation.door(6):
        release = dpl.release_model(
            X, target=y, **PUBLIC, **BUDGET, **BETWEEN, lift=lift, mechanism="frank_wolfe"
        )
    assert (release.lift["method"] == "carried") == (lift == "carried")
    residual, gauge = release.lift["residual"], release.lift["gauge"]
    assert isinstance(residual, float)
    assert isinstance(gauge, float)
    assert residual < 1e-6
    assert gauge <= 1 + 1e-8


def test_projected_rows_alone_give_the_same_model_as_rows() -> None:
    """Rows that the projection maps without loss: both ways in see the same integers."""
    X, y = table()
    X = np.round(X * 8) / 8
    phi = Projection("rademacher", 4, FEATURES, 3)
    Z = X @ phi.integers.T / 2  # worth 1/√4, exactly
    asked = PUBLIC | BUDGET | {"row_norm": 8.0, "mechanism": "frank_wolfe"}
    with simulation.door(7):
        std = dpl.release_model(X, target=y, **asked, projection="rademacher", dimension=4, seed=3)
        proj = dpl.release_model(Z, target=y, projected=True, projection=phi, **asked)
        matrix = dpl.release_model(
            Z, target=y, projected=True, projection=phi.integers / 2, **asked
        )
    same(std, proj)
    assert np.allclose(matrix.theta, proj.theta, atol=1e-9)
    assert matrix.projection is not None
    assert matrix.projection["kind"] == "matrix"
    assert np.allclose(proj.predict(X), std.predict(X))
    assert proj.features == FEATURES


def test_projected_rows_need_a_projection_of_their_size() -> None:
    X, y = table()
    book = Book()
    for given in (np.ones((3, FEATURES)), np.full((FEATURES, 2), np.nan), "wide", np.ones(4)):
        with pytest.raises((TypeError, ValueError), match="parameter of"):
            dpl.release_model(
                X, target=y, projected=True, projection=given, **PUBLIC, **BUDGET, ledger=book
            )
    assert not book.requests


def test_unclipped_projected_rows_change_nothing_but_themselves() -> None:
    """A row far beyond its norm counts as one of that norm, but for the rounding to integers."""
    X, y = table()
    phi = Projection("rademacher", 4, FEATURES, 3)
    Z = X @ phi.integers.T / 2
    longer, long = Z.copy(), Z.copy()
    longer[3], long[3] = [2.0**40, 0, 0, 0], [3.0, 0, 0, 0]  # 1.5·row_norm
    with simulation.door(8):
        one, other = (
            dpl.release_model(
                rows, target=y, projected=True, projection=phi, clip=1.5, **PUBLIC, **BUDGET
            )
            for rows in (longer, long)
        )
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-5)


def test_an_infinite_budget_finds_the_truth() -> None:
    X, y = table()
    release = dpl.release_model(
        X,
        target=y,
        row_norm=4.0,
        constraint=20.0,
        target_bounds=(-5.0, 7.0),
        epsilon=1e7,
        mechanism="frank_wolfe",
        steps=2000,
        stride=None,
        slope=50.0,
    )
    assert np.mean((release.predict(X) - y) ** 2) < 1e-3 * np.var(y)
    assert release.coefficients == pytest.approx(np.linspace(-1, 1, FEATURES), abs=0.1)


def test_a_projection_that_happens_to_be_nought_leaves_nought() -> None:
    small: dict[str, Any] = {"projection": "sparse", "dimension": 1, "seed": 1}
    assert not Projection("sparse", 1, 2, 1).adjoint(np.eye(1)).any()
    X, y = np.ones((50, 2)), np.ones(50)
    learner = "objective_perturbation"
    release = dpl.release_model(X, target=y, **PUBLIC, **BUDGET, **small, mechanism=learner)
    assert np.isfinite(release.coefficients).all()
