"""Exact δ(ε) curves, one file for each family of noise.

| profile | the pair of laws it describes |
|---|---|
| `Gaussian` | N(0, 1) against N(μ, 1): any Gaussian noise, and μ-GDP itself |
| `GridGaussian` | discrete Gaussian noise on integer statistics |
| `Laplace` | one Laplace law against a shifted one: vectors by their L1 sensitivity |
| `Pure` | randomised response: the worst that pure ε allows |
| `Concentrated` | any that ρ-zCDP allows, by the best known conversion |
| `Selections` | exponential mechanisms, one after the other |
| `Sketch` | Gaussian sketches and inverse-Wishart draws |
| `AdditiveWishart` | Wishart noise added to a second-moment matrix |
| `Objective` | minimisers of losses with a normal linear term |
| `WithFailure`, `BesidePure`, `EitherOf` | of others: what may fail, or has two parts |
"""

from dplinear.privacy.profiles.base import Directions, Profile
from dplinear.privacy.profiles.concentrated import Concentrated
from dplinear.privacy.profiles.gaussian import Gaussian, GridGaussian
from dplinear.privacy.profiles.joined import BesidePure, EitherOf, WithFailure
from dplinear.privacy.profiles.laplace import Laplace, Pure
from dplinear.privacy.profiles.objective import Objective
from dplinear.privacy.profiles.selections import Selections
from dplinear.privacy.profiles.sketch import Sketch
from dplinear.privacy.profiles.wishart import AdditiveWishart

__all__ = [
    "AdditiveWishart",
    "BesidePure",
    "Concentrated",
    "Directions",
    "EitherOf",
    "Gaussian",
    "GridGaussian",
    "Laplace",
    "Objective",
    "Profile",
    "Pure",
    "Selections",
    "Sketch",
    "WithFailure",
]
