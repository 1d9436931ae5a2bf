"""Mechanisms: a bounded statistic and a guarantee in, released numbers out. One file each.

| name | released | positive definite |
|---|---|---|
| `analyze_gauss` | G plus symmetric Gaussian noise | not always |
| `additive_wishart` | G plus a Wishart matrix | yes |
| `sketch` | draws from N(0, G + w²I), or their second moments | yes |
| `inverse_wishart` | M with M⁻¹ ~ Wishart((G + ψI)⁻¹, ν) | yes |

`mi_projection` (`MIProjection`) is a sketch for single cells, in bits; it needs the schema as well.
Those that release rows, one for each of the table's: `additive_noise`, `projection`.
"""

from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms.cells.mi_projection import MIProjection
from dplinear.mechanisms.contract import (
    Account,
    Measurement,
    MomentsMechanism,
    Prepared,
    PreparedMoments,
)
from dplinear.mechanisms.moments.additive_wishart import AdditiveWishart
from dplinear.mechanisms.moments.analyze_gauss import AnalyzeGauss
from dplinear.mechanisms.moments.inverse_wishart import InverseWishart
from dplinear.mechanisms.moments.sketch import GaussianSketch
from dplinear.mechanisms.rows.additive_noise import AdditiveNoise
from dplinear.mechanisms.rows.contract import PreparedRows, RowsMechanism
from dplinear.mechanisms.rows.kept_projection import EncryptedFile
from dplinear.mechanisms.rows.projection import ProjectedRows

__all__ = [
    "Account",
    "AdditiveNoise",
    "AdditiveWishart",
    "AnalyzeGauss",
    "EncryptedFile",
    "GaussianSketch",
    "InverseWishart",
    "MIProjection",
    "Measurement",
    "MomentsMechanism",
    "Prepared",
    "PreparedMoments",
    "PreparedRows",
    "ProjectedRows",
    "RowsMechanism",
    "Shape",
    "Statistic",
]
