"""The published constants, beside what they really guarantee.

The published variants (`papers/*/published.py`) use these to reproduce figures. Each function
returns the constant as printed and, where the mechanism with that constant has one, its exact
profile: the certificate then states the guarantee that holds, not the one that was claimed.
docs/errata.md lists where a proof had to be corrected.
"""

import math
from dataclasses import dataclass

from dplinear import arguments
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles import AdditiveWishart, Gaussian, Profile, Sketch


@dataclass(frozen=True)
class PaperConstant:
    """A constant as printed, what was claimed of it, and what holds.

    `profile` is None where nothing holds that has a proof.
    """

    value: float
    claimed: ApproxDP | None
    profile: Profile | None
    source: str

    def holds(self) -> ApproxDP | None:
        """Return the (ε, δ) that really holds, at the δ that was claimed."""
        if self.profile is None or self.claimed is None:
            return None
        return ApproxDP(self.profile.epsilon(self.claimed.delta), self.claimed.delta)


def analyze_gauss(
    guarantee: ApproxDP, bound: float, neighbours: str = Neighbours.ADD_REMOVE
) -> PaperConstant:
    """Return σ of independent normal noise on the upper triangle of AᵀA.

    Sheffet 2015, §2 (which prints ε where ε² is meant). One row v changes that triangle by at
    most |v|² in L2, two rows by √2 times that.
    """
    where = "constants.analyze_gauss"
    relation = _public(guarantee, bound, neighbours, where)
    sigma = bound**2 * math.sqrt(2 * math.log(2 / guarantee.delta)) / guarantee.epsilon
    distance = bound**2 * (math.sqrt(2) if relation is Neighbours.REPLACE else 1)
    profile = Gaussian(distance / sigma * (1 + 1e-15), relation)
    return PaperConstant(sigma, guarantee, profile, "Sheffet 2015, §2")


def sketch(
    guarantee: ApproxDP, rows: int, bound: float, neighbours: str = Neighbours.ADD_REMOVE
) -> PaperConstant:
    """Return the ridge w² of a Gaussian sketch (Sheffet 2015, Theorem 3.1)."""
    relation = _public(guarantee, bound, neighbours, "constants.sketch")
    log = math.log(4 / guarantee.delta)
    ridge = 4 * bound**2 * (math.sqrt(2 * rows * log) + log) / guarantee.epsilon
    profile = Sketch(rows, bound**2 / ridge * (1 + 1e-15), relation)
    return PaperConstant(ridge, guarantee, profile, "Sheffet 2015, Theorem 3.1")


def inverse_wishart(
    guarantee: ApproxDP, degrees: float, bound: float, neighbours: str = Neighbours.ADD_REMOVE
) -> PaperConstant:
    """Return the ridge ψ of an inverse-Wishart draw (Sheffet 2015, Theorem 5.1).

    The paper takes `degrees` = n + d; under add_remove n is private, so a public number stands in.
    """
    relation = _public(guarantee, bound, neighbours, "constants.inverse_wishart")
    log = math.log(4 / guarantee.delta)
    ridge = 2 * bound**2 * (2 * math.sqrt(2 * degrees * log) + 2 * log) / guarantee.epsilon
    profile = Sketch(degrees, bound**2 / ridge * (1 + 1e-15), relation, inverse=True)
    return PaperConstant(ridge, guarantee, profile, "Sheffet 2015, Theorem 5.1")


def additive_wishart(
    guarantee: ApproxDP, dimension: int, neighbours: str = Neighbours.ADD_REMOVE
) -> PaperConstant:
    """Return the degrees k of Wishart(B²I, k) noise (Sheffet 2015, Theorem 4.1)."""
    where = "constants.additive_wishart"
    relation = _public(guarantee, 1.0, neighbours, where)
    dimension = arguments.integer(dimension, "dimension", where, low=1)
    log = math.log(4 / guarantee.delta)
    degrees = math.floor(dimension + 14 / guarantee.epsilon**2 * 2 * log)
    profile = AdditiveWishart(degrees, dimension, 1.0, relation)
    return PaperConstant(degrees, guarantee, profile, "Sheffet 2015, Theorem 4.1")


def adassp(guarantee: ApproxDP, neighbours: str = Neighbours.ADD_REMOVE) -> PaperConstant:
    """Return what AdaSSP multiplies sensitivities by: √ln(6/δ)/(ε/3) (Wang 2018, Algorithm 2).

    A row more or less moves the three parts by one standard deviation each over that constant;
    a row replaced moves the sums by up to √4.5 together (docs/theory/adassp.md).
    """
    relation = _public(guarantee, 1.0, neighbours, "constants.adassp")
    scale = math.sqrt(math.log(6 / guarantee.delta)) / (guarantee.epsilon / 3)
    square = 5.5 if relation is Neighbours.REPLACE else 3.0
    profile = Gaussian(math.sqrt(square) / scale * (1 + 1e-15), relation)
    return PaperConstant(scale, guarantee, profile, "Wang 2018, Algorithm 2")


def mutual_information(bits: float) -> PaperConstant:
    """Return the variance of additive noise for one cell in [−1, 1].

    Showkatbakhsh et al. 2018, Lemma 1: 1/(2^{2ε} − 1), which is exactly right. It is also μ-GDP
    with μ = 2/σ, whose profile is given.
    """
    bits = arguments.positive(bits, "bits", "constants.mutual_information")
    variance = 1 / math.expm1(2 * math.log(2) * bits)
    profile = Gaussian(2 / math.sqrt(variance) * (1 + 1e-15), Neighbours.ELEMENT)
    return PaperConstant(variance, None, profile, "Showkatbakhsh et al. 2018, Lemma 1")


def projected_rows(dimension: int, k: int) -> PaperConstant:
    """Return c for Laplace(c/ε) noise on rows projected to k dimensions: 2√k.

    Dhaliwal et al. 2019, Theorem 3, claims ε-DP but for a probability d·e^{−k/2}, which exceeds 1
    in half of its settings: then nothing is claimed at all, and `claimed` is None. No profile
    holds for a scale that ignores the projection drawn.
    """
    where = "constants.projected_rows"
    dimension = arguments.integer(dimension, "dimension", where, low=1)
    k = arguments.integer(k, "k", where, low=1)
    failure = dimension * math.exp(-k / 2)
    claimed = ApproxDP(1.0, failure) if failure < 1 else None
    return PaperConstant(2 * math.sqrt(k), claimed, None, "Dhaliwal et al. 2019, Theorem 3")


def projected_whole_rows(k: int) -> PaperConstant:
    """Return c for rows that differ by at most 1 in L2: k·√(2 ln(2k)/k).

    Dhaliwal et al. 2019, Theorem 5, claims ε-DP but for a probability 2k·e^{−kt²/2} with c = kt,
    which is 1 at the t that it sets: nothing is claimed at all.
    """
    k = arguments.integer(k, "k", "constants.projected_whole_rows", low=1)
    value = math.sqrt(2 * k * math.log(2 * k))
    return PaperConstant(value, None, None, "Dhaliwal et al. 2019, Theorem 5")


# Of the ρ that is asked for, what each algorithm of Ediger 2021 spends: Algorithm 3 hands out
# [.1, .45, .45]ρ and uses the first two; 5 adds ρ/5 and calls it with 2ρ/3; 6 likewise.
COINPRESS_SPENDS = {3: 0.55, 5: 1 / 5 + 2 / 3 * 0.55, 6: 0.7}


def _public(guarantee: ApproxDP, bound: float, neighbours: str, where: str) -> Neighbours:
    rule = "an ApproxDP guarantee with ε and δ above 0"
    if not isinstance(guarantee, ApproxDP):
        raise arguments.wrong_type("guarantee", where, rule, guarantee)
    if guarantee.epsilon == 0 or guarantee.delta == 0:
        raise arguments.rejection("guarantee", where, rule, guarantee)
    arguments.positive(bound, "bound", where)
    return Neighbours.parse(neighbours, where, (Neighbours.ADD_REMOVE, Neighbours.REPLACE))
