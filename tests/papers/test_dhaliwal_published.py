"""Projected rows with the noise of Dhaliwal et al. 2019: as printed, and what is left of it."""

import math
from typing import Any

import pytest

from dplinear.mechanisms.rows import row_maps
from dplinear.noise import simulation
from dplinear.papers import constants
from dplinear.papers.dhaliwal.published import PublishedProjectedRows, published_delta
from dplinear.privacy import ZCDP, ApproxDP, Neighbours, PureDP
from mechanisms.projected import numbers, prepared

TABLE1 = [(3, 2), (10, 3), (50, 10), (100, 20)]


@pytest.mark.parametrize(
    ("size", "delta"), list(zip(TABLE1, (1.10, 2.23, 0.34, 0.0045), strict=True))
)
def test_the_paper_claims_more_than_it_has(size: tuple[int, int], delta: float) -> None:
    d, k = size
    assert published_delta(d, k, Neighbours.ELEMENT) == pytest.approx(delta, rel=0.02)
    assert published_delta(d, k, Neighbours.ROW_L2) == 1
    made = prepared(numbers(d), guarantee=PureDP(4.0), k=k, change=1.0, kind=PublishedProjectedRows)
    holds = made.account.holds
    assert made.noise_model.scale == pytest.approx(2 * math.sqrt(k) / 4, rel=1e-4)
    assert made.parameters["published_delta"] == published_delta(d, k, Neighbours.ELEMENT)
    if delta > 1:
        assert holds is None
    else:
        assert isinstance(holds, ApproxDP)
        assert holds.epsilon == 4.0
        assert delta * 0.98 < holds.delta < delta * 1.02
    for relation in ("row_l1", "row_l2"):
        whole = prepared(
            numbers(d),
            guarantee=PureDP(4.0),
            k=k,
            change=1.0,
            missing_public=True,
            neighbours=relation,
            kind=PublishedProjectedRows,
        )
        constant = k * math.sqrt(2 * math.log(2 * k) / k)
        assert whole.noise_model.scale == pytest.approx(constant / 4, rel=2e-3)
        assert constants.projected_whole_rows(k).value == pytest.approx(constant)
        assert whole.account.holds is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("projection", "rademacher"),
        ("noise", "gaussian"),
        ("label", "x1"),
        ("guarantee", ZCDP(1.0)),
        ("drawn", row_maps.draw("gaussian", 3, 2, simulation.entropy(1))),
    ],
)
def test_what_the_paper_does_not_have_is_refused(name: str, value: Any) -> None:
    given: dict[str, Any] = {"guarantee": PureDP(1.0), "k": 2} | {name: value}
    with pytest.raises(ValueError, match=f"'{name}' parameter of PublishedProjectedRows"):
        PublishedProjectedRows(**given)
