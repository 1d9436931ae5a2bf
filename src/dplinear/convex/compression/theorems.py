"""What the theory of compressed learning promises, as calculators: how figures grow, no bounds.

Kasiviswanathan and Jin 2016, "Efficient private empirical risk minimization for high-dimensional
learning": Corollary 3.9, Lemma 3.10, Theorem 3.11, Table 1. Each holds up to a constant that the
paper does not give, and that is 1 here; logarithms are natural. With unit constants Theorem 3.11
asks for more dimensions than there are at any size that fits a machine.
"""

import math
from dataclasses import dataclass
from typing import Any

from dplinear import arguments
from dplinear.privacy.guarantees import ApproxDP, PureDP


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A problem, as the theorems see it.

    `rows` is n; `width` the Gaussian width w(C); `size` the largest norm in C, ‖C‖₂; `lipschitz`
    the steepest slope λ of the loss in ⟨x, θ⟩, for rows of norm at most 1; `subgaussian` the ψ₂
    norm ψ of the rows of √m·Φ.
    """

    rows: int
    width: float
    size: float
    lipschitz: float = 1.0
    subgaussian: float = 1.0

    def __post_init__(self) -> None:
        where = "Setting"
        object.__setattr__(self, "rows", arguments.integer(self.rows, "rows", where, low=2))
        for name in ("width", "size", "lipschitz", "subgaussian"):
            object.__setattr__(self, name, arguments.positive(getattr(self, name), name, where))


def balanced_distortion(setting: Setting, guarantee: PureDP | ApproxDP) -> float:
    """Return the γ of Theorem 3.11, at which noise and distortion cost the same.

    √m/(nε) = γ for (ε, δ), m/(nε) = γ for pure ε, with m = ψ⁴w²/γ² and without logarithms.
    The theorem speaks where it is below 1: w·ψ² < nε for (ε, δ), w·ψ² < √(nε) for pure ε.
    """
    spent = setting.rows * _epsilon(guarantee, "theorems.balanced_distortion")
    shape = setting.subgaussian**2 * setting.width
    if _pure(guarantee):
        return math.cbrt(shape * shape / spent)
    return math.sqrt(shape / spent)


def projected_dimension(setting: Setting, guarantee: PureDP | ApproxDP, failure: float) -> int:
    """Return the m of Theorem 3.11, part 1 for (ε, δ) and part 2 for pure ε, rounded up.

    ψ²nε·(w + √ln n)²·ln(n/β)/w, or ψ^(4/3)·(nε)^(2/3)·(w + √ln n)²·ln(n/β)/w^(4/3), which is the m
    of Lemma 3.10 for the balanced γ. Requires: β = `failure` in (0, 1).
    """
    return preserving_dimension(setting, balanced_distortion(setting, guarantee), failure)


def preserving_dimension(setting: Setting, distortion: float, failure: float) -> int:
    """Return the m of Lemma 3.10, (ψ⁴/γ²)·(w + √ln n)²·ln(n/β), rounded up.

    With so many dimensions the risk of the lifted θ is above its compressed risk by no more than
    `risk_gap`, with probability 1 − β. Requires: γ = `distortion` > 0; β = `failure` in (0, 1).
    """
    where = "theorems.preserving_dimension"
    gamma = arguments.positive(distortion, "distortion", where)
    spread = (setting.width + math.sqrt(math.log(setting.rows))) ** 2
    needed = setting.subgaussian**4 / gamma**2 * spread
    return math.ceil(needed * math.log(setting.rows / _failure(failure, where)))


def preserved_distortion(setting: Setting, dimension: int, failure: float) -> float:
    """Return the γ of Lemma 3.10 for an m, ψ²·(w + √ln n)·√(ln(n/β)/m).

    Requires: m = `dimension` of at least 1; β = `failure` in (0, 1). The lemma speaks where γ < 1.
    """
    where = "theorems.preserved_distortion"
    dimension = arguments.integer(dimension, "dimension", where, low=1)
    spread = setting.width + math.sqrt(math.log(setting.rows))
    tail = math.log(setting.rows / _failure(failure, where)) / dimension
    return setting.subgaussian**2 * spread * math.sqrt(tail)


def risk_gap(setting: Setting, distortion: float) -> float:
    """Return λγ‖C‖₂ of Lemmas 3.5 and 3.10: what a distortion of γ costs in risk."""
    gamma = arguments.positive(distortion, "distortion", "theorems.risk_gap")
    return setting.lipschitz * gamma * setting.size


def lift_distance(setting: Setting, dimension: int, failure: float) -> float:
    """Return the ψ⁴(w + ‖C‖₂·√ln(1/β))/√m of Corollary 3.9.

    It bounds, up to a constant and with probability 1 − β, how far the lifted θ is from any θ of C
    with the same Φθ. Requires: m = `dimension` of at least 1; β = `failure` in (0, 1).
    """
    where = "theorems.lift_distance"
    dimension = arguments.integer(dimension, "dimension", where, low=1)
    tail = setting.size * math.sqrt(math.log(1 / _failure(failure, where)))
    return setting.subgaussian**4 * (setting.width + tail) / math.sqrt(dimension)


def compressed_rate(setting: Setting, guarantee: PureDP | ApproxDP) -> float:
    """Return Table 1's excess risk from compressed rows, without powers of ln n.

    Pure ε: ψ^(4/3)·λ·w^(2/3)·‖C‖₂/(nε)^(1/3). (ε, δ): ψ·λ·√w·‖C‖₂·ln²(1/δ)/√(nε). Valid where
    `balanced_distortion` is below 1, for any convex λ-Lipschitz loss of ⟨x, θ⟩.
    """
    rate = risk_gap(setting, balanced_distortion(setting, guarantee))
    return rate * _tail(guarantee)


def traditional_rate(
    setting: Setting, guarantee: PureDP | ApproxDP, curvature: float | None = None
) -> float:
    """Return Table 1's excess risk from the rows themselves, without powers of ln n.

    Pure ε: λ·w^(2/3)·‖C‖₂/(nε)^(1/3), the compressed rate with ψ = 1, since Φ is one's own choice.
    (ε, δ): Γ^(1/3)·(λw)^(2/3)·ln²(1/δ)/(nε)^(2/3), of Frank-Wolfe (Talwar, Thakurta and Zhang
    2015), which needs the `curvature` constant Γ of the loss over C and is valid for smooth losses.
    """
    where = "theorems.traditional_rate"
    spent = setting.rows * _epsilon(guarantee, where)
    if _pure(guarantee):
        return setting.lipschitz * setting.size * math.cbrt(setting.width**2 / spent)
    if curvature is None:
        hint = "for the squared loss, the largest ‖x‖²·(diameter of C)² times 2."
        rule = "given for (ε, δ): Frank-Wolfe's rate depends on it"
        raise arguments.wrong_type("curvature", where, rule, curvature, hint)
    gamma = arguments.positive(curvature, "curvature", where)
    slope = setting.lipschitz * setting.width / spent
    return math.cbrt(gamma * slope * slope) * _tail(guarantee)


def _pure(guarantee: PureDP | ApproxDP) -> bool:
    return isinstance(guarantee, PureDP) or guarantee.delta == 0


def _tail(guarantee: PureDP | ApproxDP) -> float:
    """Return ln²(1/δ), and 1 for pure ε."""
    if isinstance(guarantee, PureDP) or guarantee.delta == 0:
        return 1.0
    return math.log(1 / guarantee.delta) ** 2


def _epsilon(guarantee: Any, where: str) -> float:
    if not isinstance(guarantee, PureDP | ApproxDP):
        raise arguments.wrong_type("guarantee", where, "a PureDP or ApproxDP guarantee", guarantee)
    return arguments.positive(guarantee.epsilon, "epsilon", where)


def _failure(failure: float, where: str) -> float:
    return arguments.real(failure, "failure", where, low=0, high=1, open_low=True, open_high=True)
