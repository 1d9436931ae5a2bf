"""Projected rows: exact products, the right noise in the right units, and what is said of it."""

import dataclasses
import hashlib
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from scipy.stats import beta, binom

from dplinear.analyst.noise_models.rows import ProjectedRows as ProjectedRowsNoise
from dplinear.arguments import ArgumentTypeError
from dplinear.ledger.fingerprint import plain
from dplinear.mechanisms.cells.cell_moves import Bounded
from dplinear.mechanisms.rows import row_maps
from dplinear.mechanisms.rows.kept_projection import EncryptedFile, new_key
from dplinear.mechanisms.rows.projection import PreparedProjection, ProjectedRows
from dplinear.mechanisms.rows.reconstruction import attack
from dplinear.mechanisms.rows.row_changes import changes_of
from dplinear.mechanisms.rows.row_noise import Setting
from dplinear.noise import simulation
from dplinear.papers import constants
from dplinear.privacy import GDP, ZCDP, ApproxDP, Neighbours, PureDP
from dplinear.privacy.half_normals import half_normal_quantile
from dplinear.schema import Schema
from refusals import refused

from .projected import MIXED, images, kept_places, numbers, prepared, shape_of

PURE = PureDP(1.0)
APPROXIMATE = ApproxDP(1.0, 1e-6)
TABLE1 = [(3, 2), (10, 3), (50, 10), (100, 20)]


def some_rows(schema: Schema, count: int, seed: int = 2) -> np.ndarray:
    """Return integer rows, as they come out of the curator's pass."""
    cells = simulation.generator(seed).uniform(-1, 1, (schema.dimension, count))
    return np.rint(cells * shape_of(schema).steps_per_unit)


def values(made: PreparedProjection, rows: np.ndarray, seed: int = 3) -> np.ndarray:
    batch = made.release(rows.copy(), simulation.entropy(seed))
    return np.array([batch.column(f"z{j}").to_numpy() for j in range(1, made.projection.k + 1)])


def noised(made: PreparedProjection, rows: np.ndarray, seed: int = 3) -> np.ndarray:
    """Return what was added to XP where all rows are the same, in the cells' units."""
    schema = numbers(len(rows) - 1)
    clean = np.array(images(made, rows[:, :1], kept_places(schema)), np.float64).T
    return values(made, rows, seed) - clean * made.projection.unit / shape_of(schema).steps_per_unit


# The matrix


@pytest.mark.parametrize("kind", row_maps.KINDS)
def test_lengths_are_kept_on_average(kind: str) -> None:
    """The mean of ‖xP‖² over 500 draws, within 5.5 standard errors: false-alarm rate 1e-6."""
    entropy, x = simulation.entropy(1), np.array([0.5, -1.0, 0.1, 2.0])
    squares = [
        float(((x @ row_maps.draw(kind, 4, 3, entropy).matrix()) ** 2).sum()) for _ in range(500)
    ]
    error = 5.5 * float(np.std(squares)) / math.sqrt(500)
    assert abs(float(np.mean(squares)) - float(x @ x)) < error


def test_a_square_orthonormal_map_is_a_rotation() -> None:
    matrix = row_maps.draw("orthonormal", 6, 6, simulation.entropy(2)).matrix()
    assert np.allclose(matrix @ matrix.T, np.eye(6), atol=1e-5)
    tall = row_maps.draw("orthonormal", 6, 2, simulation.entropy(2)).matrix()
    assert np.allclose(tall.T @ tall, 3 * np.eye(2), atol=1e-5)


def test_maps_are_read_as_they_were_written() -> None:
    for kind in row_maps.KINDS:
        drawn = row_maps.draw(kind, 5, 3, simulation.entropy(4))
        again = row_maps.RowMap.of(drawn.facts())
        assert (again.integers == drawn.integers).all()
        assert again.unit == drawn.unit
    with refused("k", "RowMap"):
        row_maps.draw("orthonormal", 2, 3, simulation.entropy(4))


# The noise


@pytest.mark.parametrize("noise", ["laplace", "quantile", "gaussian", "perturbed"])
@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
def test_noise_has_the_variance_that_the_law_says(noise: str, kind: str) -> None:
    """Means over 20,000 rows, within 5.5 standard errors, estimated: false-alarm rate 1e-6."""
    if noise == "quantile" and kind != "gaussian":
        return
    made = prepared(numbers(3), guarantee=APPROXIMATE, k=2, noise=noise, projection=kind)
    law = made.noise_model
    assert isinstance(law, ProjectedRowsNoise)
    drawn = noised(made, np.tile(some_rows(numbers(3), 1), 20_000))
    squares = (drawn**2).mean(axis=0)
    error = 5.5 * float(squares.std()) / math.sqrt(20_000)
    assert abs(float(squares.mean()) - law.variance) < error
    assert abs(float(drawn.mean())) < 5.5 * math.sqrt(law.variance / 20_000)
    if not made.noise.before:
        expected = law.scale**2 * (1 if noise == "gaussian" else 2)
        assert law.variance == pytest.approx(expected, rel=1e-9)


MU = 0.236704380663436  # of (1, 1e-6), in 40 digits elsewhere: tests/privacy/test_calibrate.py


@pytest.mark.parametrize("relation", ["element", "row_l1", "row_l2"])
def test_every_scale_is_the_one_of_its_formula(relation: str) -> None:
    """Norms by NumPy, in floats; a thousandth allows for the rounding of changes to the grid."""
    options: dict[str, Any] = {"k": 3, "neighbours": relation, "change": 0.5}
    options["missing_public"] = True
    made = {
        noise: prepared(numbers(5), guarantee=APPROXIMATE, noise=noise, **options)
        for noise in ("laplace", "quantile", "gaussian")
    }
    pure = prepared(numbers(5), guarantee=PURE, noise="perturbed", **options)
    normal = prepared(numbers(5), guarantee=ZCDP(MU**2 / 2), noise="perturbed", **options)
    matrix = made["laplace"].projection.matrix()
    signs = np.array(list(itertools.product((1, -1), repeat=3))).T
    short = relation != "row_l2"
    absolute = np.abs(matrix).sum(axis=1).max()
    lengths = np.linalg.norm(matrix, axis=1).max()
    expected = {
        "laplace": absolute if short else np.linalg.norm(matrix @ signs, axis=0).max(),
        "quantile": half_normal_quantile(3, 1e-6) / math.sqrt(3),
        "gaussian": (lengths if short else np.linalg.norm(matrix, 2)) / MU,
    }
    for noise, scale in expected.items():
        assert made[noise].noise_model.scale == pytest.approx(0.5 * scale, rel=1e-3)
    assert pure.noise.kind == "perturbed"
    assert pure.noise_model.scale == pytest.approx(0.5 * (1 if short else math.sqrt(5)), rel=1e-3)
    assert normal.noise.kind == "perturbed gaussian"
    assert normal.noise_model.scale == pytest.approx(0.5 / MU, rel=1e-3)


def test_noise_before_the_projection_goes_through_it() -> None:
    made = prepared(numbers(3), guarantee=PURE, k=2, noise="perturbed", public_projection=True)
    law = made.noise_model
    assert isinstance(law, ProjectedRowsNoise)
    matrix = law.projection_matrix
    assert matrix is not None
    covariance = 2 * law.scale**2 * matrix.T @ matrix
    drawn = noised(made, np.tile(some_rows(numbers(3), 1), 40_000))
    assert np.allclose(np.cov(drawn), covariance, rtol=0, atol=0.06 * np.trace(covariance))
    assert np.trace(covariance) / 2 == pytest.approx(law.variance, rel=1e-9)


def test_released_numbers_lie_on_the_grid() -> None:
    """Whatever the data, a released number is a whole multiple of the public step."""
    made = prepared(numbers(3), guarantee=PURE, k=2, noise="laplace")
    steps = values(made, some_rows(numbers(3), 500)) / made._unit
    assert np.abs(steps - np.rint(steps)).max() < 0.1


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    made = prepared(numbers(5), guarantee=PURE, k=3, noise="laplace")
    rows = some_rows(numbers(5), 300)
    places = kept_places(numbers(5))
    whole = made._transposed @ rows[made._indices]
    assert whole.T.tolist() == images(made, rows, places)
    for count in (1, 2, 7):
        assert (made._transposed @ rows[made._indices][:, :count] == whole[:, :count]).all()


def test_wide_noise_is_drawn_on_a_coarser_grid() -> None:
    made = prepared(numbers(3), guarantee=PureDP(1e-9), k=2, noise="laplace")
    fine = prepared(numbers(3), guarantee=PURE, k=2, noise="laplace")
    assert made.noise.step > 0
    assert made.noise_model.scale == pytest.approx(1e9 * fine.noise_model.scale, rel=1e-4)
    drawn = values(made, some_rows(numbers(3), 4000))
    assert np.abs(drawn).mean() == pytest.approx(made.noise_model.scale, rel=0.1)


@pytest.mark.parametrize("relation", ["element", "row_l1", "row_l2"])
@pytest.mark.parametrize("guarantee", [PURE, APPROXIMATE, ZCDP(0.1)])
@pytest.mark.parametrize(("dimension", "k"), [(3, 2), (40, 5)])
def test_auto_takes_the_least_variance(
    relation: str, guarantee: Any, dimension: int, k: int
) -> None:
    """Of the noises that hold for the matrix drawn, or the quantile if a trial matrix says so."""
    schema = numbers(dimension)
    options = {"guarantee": guarantee, "k": k, "neighbours": relation, "change": 0.5}
    options["missing_public"] = True
    best = prepared(schema, **options)
    others = []
    for noise in ("laplace", "gaussian", "perturbed"):
        try:
            others.append(prepared(schema, noise=noise, **options).noise_model.variance)
        except ValueError:
            continue
    if best.noise.kind == "quantile":
        assert best.noise_model.variance < 1.5 * min(others)
    else:
        assert best.noise_model.variance == min(others)
    assert best.account.holds == guarantee


def test_the_released_matrix_has_no_say_in_taking_a_chance_on_it() -> None:
    """A matrix that is long, and so likelier a bad one, is not why "quantile" noise is taken."""
    schema, change = numbers(400), Bounded(1.0, missing_public=True)
    shape, places = shape_of(schema), tuple(kept_places(schema))
    changes = changes_of(schema, shape, Neighbours.ROW_L2, change, places, "tests")
    usual = row_maps.draw("gaussian", 400, 3, simulation.entropy(1))
    short, long = (
        dataclasses.replace(usual, integers=np.rint(usual.integers * factor))
        for factor in (0.1, 5.0)
    )
    for drawn in (short, usual, long):
        setting = Setting(APPROXIMATE, Neighbours.ROW_L2, changes, drawn)
        assert setting.best("auto", long).kind == "quantile"
        assert setting.best("auto", short).kind != "quantile"
        assert setting.best("auto").kind != "quantile"
    assert Setting(APPROXIMATE, Neighbours.ROW_L2, changes, usual).best("auto", usual).kind == (
        "quantile"
    )


def test_the_profile_keeps_what_was_asked() -> None:
    for noise in ("laplace", "quantile", "gaussian", "perturbed"):
        made = prepared(numbers(4), guarantee=APPROXIMATE, k=3, noise=noise, neighbours="row_l2")
        assert made.account.profile is not None
        assert made.account.profile.delta(1.0) <= 1e-6
    pure = prepared(numbers(4), guarantee=PURE, k=3).account.profile
    assert pure is not None
    assert pure.delta(1.0) == 0


@pytest.mark.parametrize("noise", ["quantile", "gaussian"])
def test_what_is_never_pure_is_refused(noise: str) -> None:
    with refused("guarantee", "ProjectedRows"):
        prepared(numbers(3), guarantee=PURE, k=2, noise=noise)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k"),
        ({"projection": "sparse"}, "projection"),
        ({"noise": "none"}, "noise"),
        ({"label_share": 1.0}, "label_share"),
        ({"public_projection": 1}, "public_projection"),
        ({"keep_projection": "file"}, "keep_projection"),
        ({"guarantee": GDP(1.0)}, "guarantee"),
        ({"guarantee": ApproxDP(0.0, 0.1)}, "guarantee"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"guarantee": PURE, "k": 2} | options
    with pytest.raises((TypeError, ValueError), match=f"'{message}'"):
        ProjectedRows(**given)


# Failures of the quantile


def exceeded(factor: float, count: int) -> int:
    """Return how many of `count` matrices move a row that was fixed before further than ε·b."""
    guarantee, schema = ApproxDP(1.0, 0.05), numbers(3)
    row = np.array([0.6, 0.64, 0.48]) * shape_of(schema).steps_per_unit  # of norm 1
    entropy, hits = simulation.entropy(9), 0
    options: dict[str, Any] = {"change": 1.0, "missing_public": True, "noise": "quantile"}
    made = prepared(schema, guarantee=guarantee, k=4, neighbours="row_l2", **options)
    for _ in range(count // 1000):
        # Columns are independent, so a wide map is a thousand maps side by side.
        images = row @ row_maps.draw("gaussian", 3, 4000, entropy).integers
        sums = np.abs(images).reshape(-1, 4).sum(axis=1)
        hits += int(np.count_nonzero(sums > made.noise.scale * factor))
    return hits


def test_a_quantile_fails_as_often_as_delta_allows_and_no_more() -> None:
    """Binomial, at a false-alarm rate of 1e-6; two hundredths less noise fails more often."""
    count, hits = 20_000, exceeded(1.0, 20_000)
    assert hits <= binom.isf(1e-6, count, 0.05)
    assert hits >= binom.isf(1 - 1e-6, count, 0.048)


def test_a_quantile_of_half_the_matrix_is_caught() -> None:
    assert exceeded(0.8, 1000) > binom.isf(1e-6, 1000, 0.05)


# The paper


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("size", "ours", "theirs"),
    list(zip(TABLE1, (1.66, 2.40, 4.00, 5.20), (2.83, 3.46, 6.32, 8.94), strict=True)),
)
def test_the_drawn_matrix_needs_less_noise_than_the_published_one(
    size: tuple[int, int], ours: float, theirs: float
) -> None:
    """The mean of 300 scales, within 5.5 standard errors and the rounding of what is expected."""
    d, k = size
    entropy = simulation.entropy(7)
    scales = [
        float(np.abs(row_maps.draw("gaussian", d, k, entropy).matrix()).sum(axis=1).max())
        for _ in range(300)
    ]
    error = 5.5 * float(np.std(scales)) / math.sqrt(300)
    assert abs(float(np.mean(scales)) - ours) < error + 0.006
    assert constants.projected_rows(d, k).value == pytest.approx(theirs, abs=0.005)
    made = prepared(numbers(d), guarantee=PURE, k=k, change=1.0, noise="laplace")
    largest = float(np.abs(made.projection.matrix()).sum(axis=1).max())
    assert made.noise_model.scale == pytest.approx(largest, rel=1e-4)


# A pure audit


def audited(scale: float, count: int, seed: int) -> float:
    """Return what draws on a worst pair show of ε, at 95%: by their exact likelihood ratio.

    The pair differs in the cell whose row of A is longest; the loss is largest where each number
    lies beyond the first table's, and such draws are counted on both.
    """
    schema = numbers(3)
    made = prepared(schema, guarantee=PURE, k=2, noise="laplace", seed=8)
    made.noise = dataclasses.replace(made.noise, scale=made.noise.scale * scale)
    place = 1 + int(np.abs(made.projection.integers).sum(axis=1).argmax())
    low, high = np.zeros((4, 1)), np.zeros((4, 1))
    cells = shape_of(schema).steps_per_unit
    low[place], high[place] = -cells, cells
    centre = [np.array(images(made, row, [1, 2, 3]), np.float64).T for row in (low, high)]
    unit = made.projection.unit / cells

    def losses(row: np.ndarray, number: int) -> np.ndarray:
        drawn = values(made, np.tile(row, count), seed + number) / unit
        gaps = [np.abs(drawn - each).sum(axis=0) for each in centre]
        return np.asarray((gaps[1] - gaps[0]) / made.noise.scale)

    from_low, from_high = losses(low, 0), losses(high, 1)
    top = from_low.max() * (1 - 1e-9)
    hits, misses = (int(np.count_nonzero(each >= top)) for each in (from_low, from_high))
    least = binom_bound(hits, count, 0.025)
    most = 1 - binom_bound(count - misses, count, 0.025)
    return math.log(least / most)


def binom_bound(hits: int, count: int, miss: float) -> float:
    """Return Clopper and Pearson's lower bound on a probability."""
    return float(beta.ppf(miss, hits, count - hits + 1)) if hits else 0.0


def test_a_worst_pair_shows_nine_tenths_of_epsilon_and_no_more() -> None:
    shown = audited(1.0, 40_000, 11)
    assert 0.9 <= shown <= 1.0


def test_half_the_noise_is_caught() -> None:
    assert audited(0.5, 10_000, 12) > 1.0


# Who knows the matrix


def test_the_matrix_is_released_only_where_asked() -> None:
    rows = some_rows(numbers(3), 10)
    secret = prepared(numbers(3), guarantee=PURE, k=2)
    assert secret.noise_model.matrix is None
    assert not secret.noise_model.public
    public = prepared(numbers(3), guarantee=PURE, k=2, public_projection=True)
    law = public.noise_model
    assert isinstance(law, ProjectedRowsNoise)
    assert law.projection_matrix is not None
    assert (law.projection_matrix == public.projection.matrix()).all()
    assert (values(public, rows) == values(secret, rows)).all()


def test_a_kept_matrix_can_be_read_with_its_key_alone(tmp_path: Path) -> None:
    key = new_key()
    file = EncryptedFile(tmp_path / "kept.bin", key)
    made = prepared(numbers(3), guarantee=PURE, k=2, keep_projection=file)
    made.release(some_rows(numbers(3), 5), simulation.entropy(1))
    assert not list(tmp_path.iterdir())
    for output in made.outputs():
        assert not Path(file.path).exists()
        output.complete()
        output.place()
    assert (file.read().integers == made.projection.integers).all()
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.bin"]
    assert Path(file.path).stat().st_mode & 0o077 == 0
    assert key not in Path(file.path).read_bytes()
    assert str(key) not in repr(file) + str(file)
    with refused("path", "EncryptedFile.read", "kept under this key"):
        EncryptedFile(file.path, new_key()).read()
    content = bytearray(Path(file.path).read_bytes())
    content[-1] ^= 1
    Path(file.path).write_bytes(content)
    with refused("path", "EncryptedFile.read", "kept under this key"):
        file.read()


def _entries(dimension: int, k: int) -> Iterator[np.ndarray]:
    """Yield all matrices of signs."""
    for signs in itertools.product((-1.0, 1.0), repeat=dimension * k):
        yield np.array(signs).reshape(dimension, k)


def test_nothing_public_tells_who_guesses_a_secret_matrix() -> None:
    """No digest, in any spelling, of any of the 64 matrices there are."""
    first = prepared(numbers(3), guarantee=PURE, k=2, projection="rademacher")
    drawn = first.projection
    told = json.dumps(plain(drawn)) + json.dumps(plain({"drawn": drawn}))
    guesses = [row_maps.RowMap(drawn.kind, drawn.digits, each) for each in _entries(3, 2)]
    assert any((guess.integers == drawn.integers).all() for guess in guesses)
    for guess in guesses:
        for content in (guess.integers, guess.integers.T, guess.integers.astype(np.int64)):
            spelt = [content.tobytes(), str(content.tolist()).encode(), repr(content).encode()]
            spelt.append(repr((content.dtype.str, content.shape)).encode() + content.tobytes())
            assert not any(hashlib.sha256(each).hexdigest() in told for each in spelt)
    same = row_maps.RowMap(drawn.kind, drawn.digits, drawn.integers)
    assert plain(same) != plain(drawn)  # no function of its entries


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_errors_of_attacks_are_of_another_matrix_unless_it_is_public(
    public: bool, again: bool
) -> None:
    made = prepared(numbers(3), guarantee=PURE, k=2, noise="laplace", public_projection=public)
    if again:
        made = prepared(
            numbers(3), 2, guarantee=PURE, k=2, noise="laplace", public_projection=public,
            drawn=made.projection,
        )  # fmt: skip
    own = attack(made.projection.matrix(), made.parameters["noise_variance"], before=False)
    assert (made.parameters["attack_error_best_linear"] == own.best_linear) is public


def test_a_kept_matrix_keeps_its_name_and_old_files_get_one_from_the_key(tmp_path: Path) -> None:
    file = EncryptedFile(tmp_path / "kept.bin", new_key())
    made = prepared(numbers(3), guarantee=PURE, k=2, keep_projection=file)
    (output,) = made.outputs()
    output.complete()
    output.place()
    assert file.read().name == made.projection.name
    assert plain(file.read()) == plain(made.projection)
    nonce = bytes(12)
    old = json.dumps(made.projection.facts()).encode()
    sealed = AESGCM(file.key).encrypt(nonce, old, b"dplinear projection 1\n")
    Path(file.path).write_bytes(b"dplinear projection 1\n" + nonce + sealed)
    first, second = file.read(), file.read()
    assert (first.integers == made.projection.integers).all()
    assert first.name == second.name != ""
    assert hashlib.sha256(old).hexdigest()[:32] != first.name
    assert plain(EncryptedFile(file.path, new_key())) == plain(file)  # nor of its key


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear", encoding="utf-8")
    for path in (tmp_path / "letter.txt", tmp_path, tmp_path / "nowhere" / "kept.bin"):
        with refused("keep_projection", "ProjectedRows"):
            prepared(
                numbers(3), guarantee=PURE, k=2, keep_projection=EncryptedFile(path, new_key())
            )
    with refused("key", "EncryptedFile", kind=ArgumentTypeError):
        EncryptedFile(tmp_path / "kept.bin", b"short")


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(("dimension", "k"), [(4, 2), (3, 3), (3, 5)])
def test_the_attacks_err_as_much_as_the_certificate_says(
    before: bool, dimension: int, k: int
) -> None:
    generator = simulation.generator(6)
    matrix = generator.standard_normal((dimension, k)) / math.sqrt(k)
    variance, count = 0.3, 40_000
    cells = generator.uniform(-1, 1, (count, dimension))
    noise = generator.laplace(0, math.sqrt(variance / 2), (count, dimension if before else k))
    seen = (cells + noise) @ matrix if before else cells @ matrix + noise
    said = attack(matrix, variance, before=before)
    guess = seen @ np.linalg.pinv(matrix)
    assert math.sqrt(((guess - cells) ** 2).mean()) == pytest.approx(said.least_squares, rel=0.03)
    linear = seen @ np.linalg.lstsq(seen, cells, rcond=None)[0]
    assert math.sqrt(((linear - cells) ** 2).mean()) == pytest.approx(said.best_linear, rel=0.03)
    assert said.best_linear <= min(said.least_squares, said.guessing)


def test_the_certificate_carries_the_attack() -> None:
    made = prepared(numbers(4), guarantee=PURE, k=2)
    assert made.parameters["attack_error_guessing"] == pytest.approx(math.sqrt(1 / 3))
    assert (
        made.parameters["attack_error_best_linear"] <= made.parameters["attack_error_least_squares"]
    )


def test_mixed_columns_are_released() -> None:
    made = prepared(MIXED, guarantee=PURE, k=3)
    batch = made.release(some_rows(MIXED, 20), simulation.entropy(1))
    assert batch.schema.names == ["z1", "z2", "z3"]
    assert batch.num_rows == 20
