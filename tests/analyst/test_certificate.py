"""Certificates: what they say cannot be changed, and what is not a certificate is not read."""

import copy
import dataclasses
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.analyst.releases.certificate import IDEAL, Certificate
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from refusals import refused

GUARANTEES = (PureDP(0.1), ApproxDP(1.0, 1e-6), ZCDP(0.3), GDP(2.5), MIDP(0.7))


def certificate(**changes: Any) -> Certificate:
    facts: dict[str, Any] = {
        "mechanism": "additive Wishart",
        "parameters": {"degrees": 883, "scale": 0.1, "variant": "mean removed", "note": None},
        "neighbours": Neighbours.ADD_REMOVE,
        "asked": ApproxDP(1.0, 1e-6),
        "holds": GDP(0.2),
        "curve": ((0.0, 0.08), (0.5, 1e-3), (1.0, 1e-6)),
        "numerics": "idealised",
        "calibration": "exact",
        "simulated": False,
        "request": "0b5c",
        "dataset": "visits-2026",
        "notes": ("δ is rounded up.",),
    }
    return Certificate(**(facts | changes))


@pytest.mark.parametrize("asked", GUARANTEES)
@pytest.mark.parametrize("holds", [None, *GUARANTEES])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_round_trip(asked: Guarantee, holds: Guarantee | None, neighbours: Neighbours) -> None:
    before = certificate(asked=asked, holds=holds, neighbours=neighbours)
    after = Certificate.from_dict(before.to_dict())
    assert after == before
    assert hash(after) == hash(before)
    assert type(after.neighbours) is Neighbours
    assert after.curve == before.curve
    assert after != certificate(asked=asked, holds=holds, neighbours=neighbours, request="other")


def test_copies_and_pickles_are_equal() -> None:
    before = certificate()
    for after in (copy.copy(before), copy.deepcopy(before), pickle.loads(pickle.dumps(before))):
        assert after == before
        with pytest.raises(TypeError):
            after.parameters["degrees"] = 1  # type: ignore[index]


def test_nothing_on_it_can_be_changed() -> None:
    parameters = {"degrees": 883}
    frozen = certificate(parameters=parameters, curve=[[0, 1]], notes=["one"])
    parameters["degrees"] = 1
    assert frozen.parameters == {"degrees": 883}
    assert frozen.curve == ((0.0, 1.0),)
    assert frozen.notes == ("one",)
    with pytest.raises(TypeError):
        frozen.parameters["degrees"] = 1  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        frozen.simulated = True  # type: ignore[misc]
    written = frozen.to_dict()
    written["parameters"]["degrees"] = 1
    written["notes"].append("two")
    assert frozen.parameters == {"degrees": 883}
    assert frozen.notes == ("one",)


def test_numbers_of_numpy_become_plain() -> None:
    numbers = {"a": np.int64(3), "b": np.float64(0.1), "c": True, "d": np.float32(0.5)}
    kept = certificate(parameters=numbers, curve=[(np.float64(1), np.float64(0.5))])
    assert [type(value) for value in kept.parameters.values()] == [int, float, bool, float]
    assert type(kept.curve[0][0]) is float


WRONG: list[tuple[str, Any]] = [
    ("mechanism", 3),
    ("mechanism", "x" * 2_001),
    ("mechanism", "bell \x07"),
    ("mechanism", "\x1b[2J"),
    ("mechanism", "half \ud800"),
    ("parameters", [1]),
    ("parameters", {1: 2}),
    ("parameters", {"a": [1]}),
    ("parameters", {"a": {}}),
    ("parameters", {"a": float("nan")}),
    ("parameters", {"a": float("inf")}),
    ("parameters", {"a": 1j}),
    ("parameters", {"a": Fraction(1, 3)}),
    ("parameters", {str(i): i for i in range(1_001)}),
    ("neighbours", "friends"),
    ("neighbours", 1),
    ("asked", None),
    ("asked", "ε = 1"),
    ("holds", 1.0),
    ("curve", 1),
    ("curve", [1]),
    ("curve", [[1]]),
    ("curve", [[1, 0.1, 2]]),
    ("curve", [[-1e-9, 0.1]]),
    ("curve", [[1, 1.1]]),
    ("curve", [[1, -1e-9]]),
    ("curve", [[float("nan"), 0.1]]),
    ("curve", [[1, True]]),
    ("curve", [["1", 0.1]]),
    ("curve", [[1, 0.1]] * 1_001),
    ("numerics", "fuzzy"),
    ("calibration", None),
    ("simulated", 0),
    ("simulated", None),
    ("request", None),
    ("dataset", 7),
    ("notes", "one"),
    ("notes", [1]),
    ("notes", ["two\nlines"]),
    ("version", 1),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_facts_are_refused(name: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="parameter of Certificate must be"):
        certificate(**{name: value})
    if name not in {"asked", "holds"}:
        with pytest.raises((ValueError, TypeError), match="parameter of Certificate must be"):
            Certificate.from_dict(certificate().to_dict() | {name: value})


@pytest.mark.parametrize(
    "content",
    [
        1,
        None,
        [],
        {},
        certificate().to_dict() | {"more": 1},
        {key: value for key, value in certificate().to_dict().items() if key != "notes"},
        certificate().to_dict() | {"asked": None},
        certificate().to_dict() | {"asked": {"kind": "PureDP"}},
        certificate().to_dict() | {"asked": {"kind": "PureDP", "epsilon": -1}},
        certificate().to_dict() | {"asked": {"kind": "PureDP", "epsilon": "1"}},
        certificate().to_dict() | {"asked": {"kind": "PureDP", "epsilon": 1, "delta": 0}},
        certificate().to_dict() | {"asked": {"kind": "Trust", "epsilon": 1}},
        certificate().to_dict() | {"asked": {"kind": ["PureDP"], "epsilon": 1}},
        certificate().to_dict() | {"holds": 3},
        certificate().to_dict() | {"holds": {"kind": "ApproxDP", "epsilon": 1, "delta": 1}},
    ],
)
def test_what_is_no_certificate_is_not_read(content: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="must be"):
        Certificate.from_dict(content)


def test_text_says_what_matters() -> None:
    text = str(certificate(simulated=True, numerics="exact"))
    first, second, third, *_ = text.splitlines()
    assert first.startswith("protects nobody")
    assert second == "additive Wishart: μ = 0.2 (add_remove neighbours)"
    assert third.startswith("SIMULATED")
    assert str(certificate()).startswith(f"protects {certificate().protects}\n")
    assert str(certificate(holds=None)).startswith("protects nobody")
    for words in ("asked for: ε = 1, δ = 1e-06", "δ(0.5) ≤ 0.001", "degrees = 883", "visits-2026"):
        assert words in text
    assert text.endswith("\nδ is rounded up.")
    assert "SIMULATED" not in str(certificate())
    assert "asked for" not in str(certificate(holds=ApproxDP(1.0, 1e-6)))
    assert "no formal guarantee" in str(certificate(holds=None))


def test_noise_in_floating_point_makes_the_guarantee_one_of_the_ideal_mechanism() -> None:
    floating, exact = certificate(), certificate(numerics="exact")
    assert floating.of_ideal
    assert IDEAL in floating.guarantee
    assert IDEAL in str(floating).splitlines()[1]  # not a footnote
    assert "CAUTION" in dict(floating.lines())
    assert not exact.of_ideal
    assert IDEAL not in str(exact)
    assert "CAUTION" not in dict(exact.lines())
    nothing = certificate(holds=None)  # of which there is nothing to take back
    assert not nothing.of_ideal
    assert nothing.guarantee.startswith("no formal guarantee")


def test_html_escapes_every_text() -> None:
    evil = "<script>alert('&')</script>"
    page = certificate(
        mechanism=evil,
        parameters={evil: evil},
        request=evil,
        dataset=evil,
        notes=(evil,),
        version=evil,
        simulated=True,
    )._repr_html_()
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(&#x27;&amp;&#x27;)") == 7
    assert "SIMULATED" in page


def test_a_unit_is_named_with_the_rows_that_it_counts_as() -> None:
    of_unit = certificate(unit="patient", rows_per_unit=3)
    assert Certificate.from_dict(of_unit.to_dict()) == of_unit != certificate()
    assert "'patient', counted as at most 3 rows" in of_unit.guarantee
    earlier = certificate().to_dict()  # as files from before there were units have it
    assert not {"unit", "rows_per_unit"} & set(earlier)
    for half in ({"unit": "patient"}, {"rows_per_unit": 3}):
        with refused("rows_per_unit", "Certificate", "with a unit"):
            Certificate.from_dict(earlier | half)
