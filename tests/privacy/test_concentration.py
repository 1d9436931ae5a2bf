"""The ρ of a profile, against Rényi divergences by numerical integration."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dplinear.privacy.concentration import concentration
from dplinear.privacy.profiles.base import Profile
from dplinear.privacy.profiles.concentrated import Concentrated
from dplinear.privacy.profiles.gaussian import Gaussian, GridGaussian
from dplinear.privacy.profiles.joined import BesidePure, EitherOf, WithFailure
from dplinear.privacy.profiles.laplace import Laplace, Pure
from dplinear.privacy.profiles.selections import Selections

ORDERS = (1.001, 1.5, 2.0, 4.0, 16.0, 64.0)


def renyi_gaussian(mu: float, order: float) -> float:
    x, step = np.linspace(-40, 40 + order * mu, 400_001, retstep=True)
    logs = order * -0.5 * (x - mu) ** 2 - (order - 1) * -0.5 * x**2 - 0.5 * math.log(2 * math.pi)
    return float(np.log(np.exp(logs - logs.max()).sum() * step) + logs.max()) / (order - 1)


def renyi_response(loss: float, order: float) -> float:
    """Return the divergence of randomised response: of all that is pure, the largest."""
    yes = 1 / (1 + math.exp(-loss))
    no = 1 - yes
    both = yes**order * no ** (1 - order) + no**order * yes ** (1 - order)
    return math.log(both) / (order - 1)


@pytest.mark.parametrize("mu", [0.05, 0.7, 2.0])
def test_gaussian_noise(mu: float) -> None:
    for profile in (Gaussian(mu), GridGaussian(mu, 0.001)):
        found = concentration(profile)
        assert found is not None
        ratios = [renyi_gaussian(mu, order) / order for order in ORDERS]
        assert max(ratios) <= found.rho * (1 + 1e-6)
        assert found.rho <= max(ratios) * (1 + 1e-6)


@pytest.mark.parametrize("loss", [0.1, 1.0, 3.0])
def test_pure_losses(loss: float) -> None:
    for profile in (Pure(loss), Laplace(loss)):
        found = concentration(profile)
        assert found is not None
        ratios = [renyi_response(loss, order) / order for order in ORDERS]
        assert max(ratios) <= found.rho * (1 + 1e-9)


KNOWN: dict[str, tuple[Profile | None, float | None]] = {
    "concentrated": (Concentrated(0.25), 0.25),
    "choices": (Selections(Fraction(1, 2), 8), 0.25),
    "beside": (BesidePure(Concentrated(0.25), 1.0), 0.25 + math.tanh(0.5)),
    "either": (EitherOf(Concentrated(0.25), Concentrated(0.5)), 0.5),
    "either of which one is not": (EitherOf(WithFailure(Pure(1), 0.1), Pure(1)), None),
    "failure": (WithFailure(Pure(1.0), 1e-9), None),
    "beside a failure": (BesidePure(WithFailure(Pure(1.0), 1e-9), 1.0), None),
    "nothing": (None, None),
}


@pytest.mark.parametrize("case", list(KNOWN))
def test_parts_add_up_and_failures_have_no_rho(case: str) -> None:
    profile, rho = KNOWN[case]
    found = concentration(profile)
    assert (found is None) == (rho is None)
    if found is not None:
        assert found.rho == pytest.approx(rho, rel=1e-12)
