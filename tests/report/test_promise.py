"""What a guarantee means in words: the numbers are right, and rounded against us."""

import math

import pytest
from scipy.stats import norm

from dplinear.privacy.guarantees import GDP, MIDP, ApproxDP, Guarantee, PureDP
from dplinear.report.cautions import cautions
from dplinear.report.promise import (
    Promise,
    accuracy,
    factor,
    neighbours_in_words,
    odds,
    percent,
    power,
    promise,
    proved_points,
)

from .samples import certificate

pytestmark = pytest.mark.heavy


def test_one_point_bounds_every_test_as_the_trade_off_says() -> None:
    # Randomised response tells the truth with chance e/(1+e): the worst that ε = 1 allows.
    truth = math.e / (1 + math.e)
    assert accuracy(PureDP(1.0), ((1.0, 0.0),)) == pytest.approx(truth, rel=1e-12)
    assert power(PureDP(1.0), ((1.0, 0.0),), alarm=1 - truth) == pytest.approx(truth, rel=1e-12)
    # A mechanism that publishes everything with chance δ, and nothing else.
    assert accuracy(ApproxDP(0.0, 0.3), ((0.0, 0.3),)) == pytest.approx(0.65, rel=1e-12)
    assert power(ApproxDP(0.0, 0.3), ((0.0, 0.3),)) == pytest.approx(0.35, rel=1e-12)


def test_a_gaussian_promise_has_the_gaussian_trade_off() -> None:
    assert accuracy(GDP(0.5), ()) == pytest.approx(norm.cdf(0.25), rel=1e-12)
    assert power(GDP(0.5), ()) == pytest.approx(norm.cdf(norm.ppf(0.05) + 0.5), rel=1e-12)


def test_the_curve_tells_more_than_its_asked_point_and_never_less_than_the_truth() -> None:
    told = promise(certificate())
    alone = accuracy(ApproxDP(1.0, 1e-6), ((1.0, 1e-6),))
    assert alone is not None
    assert told.accuracy is not None
    assert told.power is not None
    mu = 0.2367  # of the Gaussian noise that keeps (1, 1e-6)
    assert norm.cdf(mu / 2) <= told.accuracy < alone
    assert norm.cdf(norm.ppf(0.05) + mu) <= told.power < math.e * 0.05 + 1e-6


def test_nothing_is_promised_where_nothing_is_proved() -> None:
    assert promise(certificate(holds=None)).accuracy is None
    assert promise(certificate(simulated=True)).sentences == ()
    assert proved_points(certificate(asked=MIDP(2.0), holds=MIDP(2.0), curve=())) == ()


def test_chances_are_rounded_up() -> None:
    chances = (0.5, 0.5472, 0.0612, 0.9949, 0.99991, 0.9999999)
    shown = ["50%", "55%", "6.2%", "99.5%", "99.991%", "100%"]
    assert [percent(chance) for chance in chances] == shown
    assert factor(1.0) == "2.72"
    assert factor(0.1) == "1.11"
    assert factor(4.0) == "54.6"
    assert factor(50.0) == "more than a million"
    assert odds(1e-6) == "one in 1,000,000"
    assert odds(3e-6) == "one in 333,000"
    assert odds(0.2) == "20%"
    assert odds(1e-20) == "one in 10^20"


def test_neighbours_are_told_by_what_they_protect() -> None:
    assert "exact number of rows" in neighbours_in_words(certificate())[0]
    assert "any other row" in neighbours_in_words(certificate(neighbours="replace"))[0]
    assert "any other row" in neighbours_in_words(certificate(neighbours="row_l2"))[0]
    near = certificate(neighbours="row_l1", parameters={"change": 0.25})
    assert "L1 distance at most 0.25" in neighbours_in_words(near)[0]
    cell = certificate(neighbours="element", parameters={"change": 0.5})
    assert "at most 0.5 halves of its range" in neighbours_in_words(cell)[0]
    for public, said in ((True, "is not hidden"), (False, "goes missing")):
        told = {"change": 0.5, "missing_public": public}
        for relation in ("element", "row_l1", "row_l2"):
            gaps = certificate(neighbours=relation, parameters=told)
            assert said in neighbours_in_words(gaps)[0]
    assert "single cell" in neighbours_in_words(certificate(neighbours="element"))[0]


def test_what_a_row_says_takes_two_steps_where_rows_come_and_go() -> None:
    # (1, 1e-6) twice, by group privacy: e² = 7.389…, and δ·(1 + e) = 3.7e-6.
    told = promise(certificate())
    assert "being in the table and not being in it by a factor of at most 2.72" in told.sentences[0]
    assert "at most 7.39," in told.sentences[1]
    assert "one in 268,000" in told.sentences[1]
    replaced = promise(certificate(neighbours="replace"))
    assert "contents of one row by a factor of at most 2.72" in replaced.sentences[0]
    assert not any("7.39" in sentence for sentence in replaced.sentences)
    certain = promise(certificate(asked=PureDP(1.0), holds=PureDP(1.0)))
    assert certain.sentences[1].endswith("by a factor of at most 7.39.")
    cell = promise(certificate(neighbours="element", asked=MIDP(0.5), holds=MIDP(0.5)))
    assert cell.headline.endswith("at most 0.5 bits about one cell.")


PERSONS = ("person", "people", "everyone", "everybody", "somebody in")


def said(told: Promise) -> str:
    about = (told.about.unit, told.about.pair, told.headline)
    return " ".join((*told.sentences, told.protected, *about)).lower()


@pytest.mark.parametrize("relation", ["add_remove", "replace", "row_l2", "element"])
def test_where_no_unit_is_named_no_person_is_promised_anything(relation: str) -> None:
    told = promise(certificate(neighbours=relation))
    assert not any(word in said(told) for word in PERSONS)
    if relation != "element":
        assert "one row" in told.about.unit
        assert "person with several rows is protected less" in told.unprotected


@pytest.mark.parametrize("holds", [PureDP(1.0), ApproxDP(1.0, 1e-6), GDP(0.5), MIDP(2.0)])
def test_where_a_unit_is_named_all_of_its_rows_are_spoken_of(holds: Guarantee) -> None:
    given = certificate(unit="patient", rows_per_unit=4, asked=holds, holds=holds)
    told = promise(given)
    assert told.about.unit == "one patient"
    assert told.headline.count("one patient") == 1
    assert "'patient'" in told.protected
    assert "one row" not in said(told)
    assert not any(word in said(told) for word in PERSONS)
    assert (told.accuracy, told.power) == (
        promise(certificate(asked=holds, holds=holds)).accuracy,
        promise(certificate(asked=holds, holds=holds)).power,
    )
    contents = [sentence for sentence in told.sentences if "two possible contents" in sentence]
    assert all("one patient is in the table" in sentence for sentence in contents)
    assert len(contents) == (not isinstance(holds, MIDP))


def test_cautions_speak_of_what_is_counted() -> None:
    for unit, counted in ((None, "number of rows"), ("patient", "number of units")):
        given = certificate(unit=unit, rows_per_unit=unit and 1)
        texts = [each.text for each in cautions(given, rows=1e9)]
        assert any(counted in text for text in texts)
