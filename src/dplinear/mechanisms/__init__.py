"""Mechanisms: a bounded statistic and a guarantee in, released numbers out. One file each.

| name | released | positive definite |
|---|---|---|
| `analyze_gauss` | G plus symmetric Gaussian noise | not always |
| `additive_wishart` | G plus a Wishart matrix | yes |
| `sketch` | draws from N(0, G + w²I), or their second moments | yes |
| `inverse_wishart` | M with M⁻¹ ~ Wishart((G + ψI)⁻¹, ν) | yes |
"""

from dplinear.mechanisms.additive_wishart import AdditiveWishart
from dplinear.mechanisms.analyze_gauss import AnalyzeGauss
from dplinear.mechanisms.contract import (
    Account,
    Measurement,
    Mechanism,
    Prepared,
    Shape,
    Statistic,
)
from dplinear.mechanisms.inverse_wishart import InverseWishart
from dplinear.mechanisms.sketch import GaussianSketch

MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind for kind in (AnalyzeGauss, AdditiveWishart, GaussianSketch, InverseWishart)
}

__all__ = [
    "MECHANISMS",
    "Account",
    "AdditiveWishart",
    "AnalyzeGauss",
    "GaussianSketch",
    "InverseWishart",
    "Measurement",
    "Mechanism",
    "Prepared",
    "Shape",
    "Statistic",
]
