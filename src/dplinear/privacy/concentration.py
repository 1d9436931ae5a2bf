"""The ρ of a profile: what a mechanism costs where releases are counted in zCDP."""

from fractions import Fraction

from dplinear.privacy.guarantees import GDP, ZCDP, PureDP
from dplinear.privacy.profiles.base import Profile
from dplinear.privacy.profiles.concentrated import Concentrated
from dplinear.privacy.profiles.gaussian import Gaussian, GridGaussian
from dplinear.privacy.profiles.joined import BesidePure, EitherOf
from dplinear.privacy.profiles.laplace import Laplace, Pure
from dplinear.privacy.profiles.selections import Selections
from dplinear.privacy.rounding import ceiling


def concentration(profile: Profile | None) -> ZCDP | None:  # noqa: PLR0911 - one for each kind
    """Return the ρ-zCDP that whatever has this profile keeps, or None where no theorem gives one.

    Gaussian noise, on a grid or not: ρ = μ²/2. Pure losses: ρ = ε·tanh(ε/2). Parts beside each
    other add up; of parts that differ in one only, the larger counts. A δ that is a chance of
    failure, and the profiles of sketches and Wishart matrices, have no ρ.
    """
    match profile:
        case Concentrated():
            return ZCDP(profile.rho)
        case Gaussian() | GridGaussian():
            return GDP(profile.mu).to(ZCDP)
        case Pure() | Laplace():
            return PureDP(profile.epsilon(0.0)).to(ZCDP)
        case Selections():
            return ZCDP(ceiling(profile.count * profile.each**2 / 8))
        case BesidePure():
            return _add(concentration(profile.profile), PureDP(profile.loss).to(ZCDP))
        case EitherOf():
            return _larger(concentration(profile.first), concentration(profile.second))
    return None


def _add(first: ZCDP | None, second: ZCDP) -> ZCDP | None:
    return None if first is None else ZCDP(ceiling(Fraction(first.rho) + Fraction(second.rho)))


def _larger(first: ZCDP | None, second: ZCDP | None) -> ZCDP | None:
    return None if first is None or second is None else ZCDP(max(first.rho, second.rho))
