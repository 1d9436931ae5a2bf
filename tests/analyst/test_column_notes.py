"""Columns that do not fit their declaration are pointed out, and noise alone never does that."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.curator import Schema, second_moments
from dplinear.noise import simulation
from dplinear.report import release_page

ROWS = 4000
SCHEMA = Schema(
    {
        "city": ["Aachen", "Berlin"],
        "ward": ["a", "b"],
        "joined": {"type": "category", "levels": ["x", "y"], "other": "y"},
        "charges": (0, 100),
        "wide": (0, 1e6),
        "both": (-1, 1),
        "age": (0, 100),
        "day": (dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
        "member": "boolean",
    }
)


def table(share: float) -> pa.Table:
    """Return rows of which about this share fits no declaration, and the rest does."""
    random = simulation.generator(3)
    odd = random.random(ROWS) < share
    usual = random.random(ROWS)
    return pa.table(
        {
            "city": np.where(odd, "Köln", "Berlin"),
            "ward": np.where(odd, "a", "b"),
            "joined": np.where(odd, "z", "x"),
            "charges": np.where(odd, 1e5, 30 + 40 * usual),
            "wide": np.where(odd, 3.0, 5e5 * (1 + usual)),
            "both": np.where(odd, 9.0 * np.sign(usual - 0.5), usual - 0.5),
            "age": 100 * usual,
            "day": np.where(odd, np.datetime64("2030-01-01"), np.datetime64("2020-07-01")),
            "member": np.zeros(ROWS),
        }
    )


def moments(share: float, epsilon: float = 10.0, **more: Any) -> Any:
    with simulation.door(11):
        return dpl.release_moments(table(share), SCHEMA, epsilon=epsilon, delta=1e-6, **more)


@pytest.mark.parametrize("mechanism", ["analyze_gauss", "additive_wishart"])
def test_what_holds_most_of_a_column_is_pointed_out(mechanism: str) -> None:
    notes = moments(0.999, mechanism=mechanism).column_notes
    assert list(notes) == ["city", "charges", "wide", "both", "day"]
    assert "about 100%) hold none of the declared levels of 'city'" in notes["city"]
    assert "its upper bound, 100, or within 1%" in notes["charges"]
    assert "its lower bound, 0, or within 1%" in notes["wide"]
    assert "at one of its bounds or within 1%" in notes["both"]
    assert "its upper bound, 2021-01-01, or within" in notes["day"]


def test_a_column_that_fits_is_not_pointed_out() -> None:
    assert dict(moments(0.0).column_notes) == {}
    assert list(moments(0.7).column_notes) == ["city"]
    assert dict(moments(0.45).column_notes) == {}


def test_noise_that_could_explain_it_is_silent() -> None:
    assert dict(moments(0.999, epsilon=0.005).column_notes) == {}


def test_a_share_just_at_the_limit_is_seldom_pointed_out() -> None:
    """Noise alone passes 3 standard errors once in 741: in 2,000 draws, more than 17 times with
    probability below 1e-8 (Poisson, mean 2.7)."""
    schema = Schema({"city": ["Aachen", "Berlin"]})
    exact = np.array([[1000.0, 0.0, 500.0], [0.0, 0.0, 0.0], [500.0, 0.0, 500.0]])
    model, random = SymmetricGaussian(2 * 15.0**2, 15.0**2), simulation.generator(5)
    certificate = moments(0.0).certificate
    alarms = sum(
        bool(MomentsRelease(schema, model.draw(exact, random), model, certificate).column_notes)
        for _ in range(2000)
    )
    assert alarms <= 17
    clear = exact.copy()
    clear[0, 2] = clear[2, 0] = 600.0
    assert MomentsRelease(schema, clear, model, certificate).column_notes


def test_markov_is_never_wrong_without_noise() -> None:
    """Whatever the column holds, a note means that at least half of it is near a bound."""
    random, told = simulation.generator(7), 0
    model, certificate = SymmetricGaussian(1e-12, 1e-12), moments(0.0).certificate
    schema = Schema({"x": (0, 100)})
    for _ in range(200):
        near = random.random() < 0.5
        share, cells = random.uniform(0.3, 1.0), random.uniform(0, 100, 500)
        cells[random.random(500) < share] = random.choice([0.0, 100.0])
        cells = np.clip(cells if not near else np.round(cells / 100) * 100, 0, 100)
        gram = second_moments(pa.table({"x": cells}), schema).cells()
        notes = MomentsRelease(schema, gram, model, certificate).column_notes
        close = np.mean(np.minimum(cells, 100 - cells) <= 1.0)
        told += bool(notes)
        assert not notes or close >= 0.5
    assert 20 < told < 180


def test_summaries_pages_and_descriptions_say_it() -> None:
    release = moments(0.999)
    told = release.column_notes
    fit = release.regress("age", ["city", "member"])
    assert fit.notes == (told["city"],)
    squeezed = " ".join(str(fit.summary()).split())
    assert told["city"] in squeezed
    assert told["charges"] not in squeezed
    assert told["charges"] in release.describe()
    page = " ".join(release_page(release).split())
    assert page.count("A column to look at") == len(told)
    assert "A column to look at" not in release_page(moments(0.0))


def test_what_cannot_be_known_is_not_said() -> None:
    for changed in ({"row_norm": 1.0}, {"intercept": False}):
        schema = Schema(SCHEMA.to_dict()["columns"], **changed)
        with simulation.door(2):
            found = dpl.release_moments(table(0.999), schema, epsilon=10.0, delta=1e-6)
        assert dict(found.column_notes) == {}


def test_rows_of_units_are_said_to_be_weighed() -> None:
    """Of these rows 2% hold no level, but two thirds of what the units count as do."""
    cities = ["Köln"] * 2_000 + ["Berlin"] * 100_000
    charges = [1e5] * 2_000 + [50.0] * 100_000
    people = [*range(2_000), *(2_000 + i % 1_000 for i in range(100_000))]
    data = pa.table({"city": cities, "charges": charges, "person": people})
    columns: dict[str, Any] = {"city": ["Aachen", "Berlin"], "charges": (0, 100)}
    with simulation.door(11):
        made = dpl.release_moments(data, columns, unit="person", epsilon=10.0, delta=1e-6)
    (note,) = made.column_notes.values()
    assert note.startswith("Most rows, weighed by 'person', (about 67%) hold none")
