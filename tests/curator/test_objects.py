"""Mechanisms as objects: the same request as by name, and nothing said twice."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import dplinear as dpl
from dplinear.coinpress.regression import CoinPressRegression
from dplinear.convex.learners import NoisyGradient
from dplinear.ledger import Request
from dplinear.mechanisms import (
    AdditiveNoise,
    AnalyzeGauss,
    GaussianSketch,
    MIProjection,
    ProjectedRows,
)
from dplinear.mechanisms.adassp import AdaSSP
from dplinear.noise import simulation

PAIR, ELEMENT = dpl.ApproxDP(1.0, 1e-6), dpl.Neighbours.ELEMENT
ROWS: Any = np.linspace(-1, 1, 40).reshape(20, 2)
SCHEMA = dpl.Schema(x=(-1, 1), y=(-1, 1))
SET: dict[str, Any] = {"target": ROWS[:, 1], "row_norm": 2.0, "constraint": 1.0}
SET |= {"target_bounds": (-1, 1)}
REPLACE = {"neighbours": "replace"}
TABLE = {"schema": SCHEMA}
MODEL = {"schema": SCHEMA, "target": "y"}
SKETCHES: dict[str, tuple[Any, dict[str, Any], Any, dict[str, Any]]] = {
    "matrix": (
        dpl.release_moments,
        TABLE | REPLACE,
        GaussianSketch(guarantee=PAIR, rows=9, most_rows=99, neighbours=dpl.Neighbours.REPLACE),
        {"rows": 9, "most_rows": 99},
    ),
    "sketch": (
        dpl.release_sketch,
        TABLE,
        GaussianSketch(guarantee=PAIR, rows=9),
        {"rows": 9, "neighbours": "add_remove"},
    ),
    "cells": (
        dpl.release_sketch,
        TABLE,
        MIProjection(guarantee=dpl.MIDP(0.5), rows=9, neighbours=ELEMENT),
        {"rows": 9, "neighbours": "element"},
    ),
}
CASES = SKETCHES | {
    "moments": (dpl.release_moments, TABLE, AnalyzeGauss(guarantee=PAIR), {}),
    "model": (dpl.release_model, MODEL, AdaSSP(guarantee=PAIR), {}),
    "steps": (
        dpl.release_model,
        MODEL,
        CoinPressRegression(guarantee=PAIR, steps=3),
        {"steps": 3},
    ),
    "rows": (
        dpl.release_rows,
        TABLE,
        ProjectedRows(guarantee=dpl.PureDP(1.0), neighbours=ELEMENT, k=2),
        {"k": 2},
    ),
    "noisy rows": (
        dpl.release_rows,
        TABLE,
        AdditiveNoise(guarantee=dpl.MIDP(0.5), neighbours=ELEMENT),
        {},
    ),
}


class Notes:
    """A ledger that writes down the fingerprints of requests."""

    def __init__(self) -> None:
        self.seen: list[str | None] = []

    def spend(self, request: Request) -> None:
        """Write it down."""
        self.seen.append(request.arguments)


@pytest.mark.parametrize("case", CASES)
def test_an_object_is_the_same_request_as_its_name(case: str) -> None:
    gate, usual, mechanism, options = CASES[case]
    ledger = Notes()
    named = {"guarantee": mechanism.guarantee, "mechanism": mechanism.name}
    found = []
    for said in ({"mechanism": mechanism}, named | options):
        with simulation.door(3):
            found.append(gate(ROWS, **usual, **said, ledger=ledger).certificate)
    assert found[0].asked == found[1].asked == mechanism.guarantee
    assert found[0].parameters == found[1].parameters
    assert found[0].neighbours is found[1].neighbours is mechanism.neighbours
    assert ledger.seen[0] == ledger.seen[1]


def test_another_option_is_another_request() -> None:
    ledger = Notes()
    for steps in (3, 4):
        mechanism = CoinPressRegression(guarantee=PAIR, steps=steps)
        dpl.release_model(ROWS, SCHEMA, "y", mechanism=mechanism, ledger=ledger)
    assert ledger.seen[0] != ledger.seen[1]


def test_options_of_a_learner_are_all_its_own() -> None:
    """By name the planner sets what the caller left open; an object leaves nothing open."""
    learner = NoisyGradient(guarantee=PAIR)
    found = dpl.release_model(ROWS, mechanism=learner, **SET)
    assert found.certificate.parameters["rate"] == learner.rate
    assert found.certificate.parameters["momentum"] == learner.momentum


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"epsilon": 1.0}, "epsilon"),
        ({"delta": 1e-6}, "delta"),
        ({"guarantee": PAIR}, "guarantee"),
        ({"rows": 3}, "rows"),
        ({"neighbours": "replace"}, "neighbours"),
        ({"mechanism": AdaSSP(guarantee=PAIR)}, "mechanism"),
        ({"mechanism": GaussianSketch(guarantee=PAIR, release="sketch")}, "mechanism"),
    ],
)
def test_nothing_is_said_twice(given: dict[str, Any], parameter: str) -> None:
    ledger = Notes()
    said: dict[str, Any] = {
        "mechanism": GaussianSketch(guarantee=PAIR, rows=9),
        "ledger": ledger,
    } | given
    with pytest.raises(dpl.ArgumentError) as caught:
        dpl.release_moments(ROWS, SCHEMA, **said)
    assert caught.value.parameter == parameter
    assert not ledger.seen


@dataclass(frozen=True, kw_only=True)
class _Mine(AnalyzeGauss):
    name: ClassVar[str] = "mine"


@dataclass(frozen=True, kw_only=True)
class _Namesake(AnalyzeGauss):
    pass


@pytest.mark.parametrize("kind", [_Mine, _Namesake])
def test_an_object_of_an_unregistered_class_is_refused(kind: type[AnalyzeGauss]) -> None:
    with pytest.raises(dpl.ArgumentError) as caught:
        dpl.release_moments(ROWS, SCHEMA, mechanism=kind(guarantee=PAIR))
    assert caught.value.parameter == "mechanism"
    assert "register" in caught.value.hint
