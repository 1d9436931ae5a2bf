"""How a guarantee is asked for: in one way, whichever it is."""

from typing import Any

import pytest

from dplinear.mechanisms.checks import read_guarantee
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, PureDP


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"epsilon": 1.0}, PureDP(1.0)),
        ({"epsilon": 1.0, "delta": 0.0}, PureDP(1.0)),
        ({"epsilon": 1.0, "delta": 1e-6}, ApproxDP(1.0, 1e-6)),
        ({"rho": 0.1}, ZCDP(0.1)),
        ({"bits": 0.5}, MIDP(0.5)),
        ({"guarantee": GDP(1.0)}, GDP(1.0)),
    ],
)
def test_every_way_is_read(given: dict[str, Any], asked: Any) -> None:
    assert read_guarantee("gate", **given) == asked


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, r"'epsilon' parameter of gate must be given: there is no default privacy"),
        ({"delta": 1e-6}, r"'epsilon' parameter of gate must be given"),
        ({"usual": "bits"}, r"(?s)'bits' parameter of gate must be given.*write bits=0\.5"),
        ({"epsilon": 1.0, "guarantee": ZCDP(1.0)}, "'guarantee' .* left out where epsilon or"),
        ({"delta": 1e-6, "guarantee": ZCDP(1.0)}, "'guarantee' .* left out where epsilon or"),
        ({"guarantee": 1.0}, "'guarantee' .* must be a guarantee such as"),
        *(
            ({amount: 1.0} | other, f"'{amount}' .* left out where another guarantee is given")
            for amount in ("bits", "rho")
            for other in ({"epsilon": 1.0}, {"delta": 0.1}, {"guarantee": ZCDP(1.0)})
        ),
        ({"bits": 1.0, "rho": 1.0}, "left out where another guarantee is given"),
        ({"rho": 1e-200}, "of an amount from"),
        ({"bits": 1e30}, "of an amount from"),
        ({"guarantee": ZCDP(1e-200)}, "of an amount from"),
        ({"rho": -1.0}, "'rho' parameter of gate"),
    ],
)
def test_one_way_alone_within_reach(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        read_guarantee("gate", **given)
