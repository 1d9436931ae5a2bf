"""Every sampler draws from the entropy it is given, and from nothing else."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dplinear.noise import (
    bartlett,
    chi,
    discrete,
    entropy,
    inversion,
    normals,
    selection,
    simulation,
    spherical,
)
from dplinear.noise.entropy import Entropy, SeededEntropy
from dplinear.noise.integers import uniform_below
from dplinear.noise.response import Response
from dplinear.noise.rounded_normals import rounded_normals

SAMPLERS: dict[str, Callable[[Entropy], object]] = {
    "laplace": lambda bits: discrete.laplace(1000, 30, entropy=bits),
    "gaussian": lambda bits: discrete.gaussian(10**6, 30, entropy=bits),
    "selection": lambda bits: [selection.draw(range(9), 0.1, entropy=bits) for _ in range(9)],
    "response": lambda bits: Response(5, 1.0).draw(np.arange(5).repeat(4), bits),
    "exact_normals": lambda bits: normals.normals(9, entropy=bits).integers(200),
    "exact_chis": lambda bits: chi.chis([1, 2, 50], entropy=bits).integers(200),
    "bartlett": lambda bits: bartlett.Bartlett(3, 5, entropy=bits).integers(200),
    "exact_spherical": lambda bits: spherical.spherical_laplace_integers(9, 9, entropy=bits),
    "integers": lambda bits: uniform_below(10**20, bits),
    "rounded normals": lambda bits: rounded_normals(1000, 30, entropy=bits),
}


def _never() -> None:
    raise AssertionError("the system was asked")


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_given_entropy_is_the_only_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = SAMPLERS[name]
    monkeypatch.setattr(entropy, "_own_stream", _never)
    first, same, other = (sample(simulation.entropy(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, same)  # type: ignore[arg-type]
    assert not np.array_equal(first, other)  # type: ignore[arg-type]


def test_bits_follow_the_stream_by_whole_bytes() -> None:
    source, stream = SeededEntropy(bytes(32)), SeededEntropy(bytes(32)).bits(8 * 9)
    told = stream.to_bytes(9, "big")
    assert source.bits(8) == told[0]
    assert source.bits(12) == int.from_bytes(told[1:3], "big") >> 4
    assert source.bits(1) == told[3] >> 7
    assert source.bits(0) == 0
    assert source.bits(40) == int.from_bytes(told[4:9], "big")


@pytest.mark.parametrize("low", [0, 5, 31])
def test_magnitudes_join_their_two_parts(low: int) -> None:
    plan = discrete.laplace_plan(Fraction(1000), discrete.FINE)
    high = inversion.invert(plan.rate, 1, 2**60, 64, simulation.entropy(3))
    tail = low << (64 - plan.shift)
    drawn = discrete._exactly(plan, 2**60, 0, tail, simulation.entropy(3))
    assert drawn == high * 2**plan.shift + low
    assert discrete._exactly(plan, 2**60, 2**32 - 1, (1 << 64) - 1, simulation.entropy(3)) is None
