"""Learners over constraint sets, by name.

`noisy_gradient`, `mirror_descent`, `whitened`: chains of noisy sums. `frank_wolfe`: extreme points,
chosen by the exponential mechanism. `objective_perturbation`, `output_perturbation`: one minimum,
with noise in the objective or after it. `exponential`: one draw. `common.py` and `perturbation.py`
have what some of them share.
"""

from dplinear.convex.learners.contract import ConstrainedMechanism
from dplinear.convex.learners.exponential import Exponential
from dplinear.convex.learners.frank_wolfe import FrankWolfe
from dplinear.convex.learners.mirror_descent import MirrorDescent
from dplinear.convex.learners.noisy_gradient import NoisyGradient
from dplinear.convex.learners.objective_perturbation import ObjectivePerturbation
from dplinear.convex.learners.output_perturbation import OutputPerturbation
from dplinear.convex.learners.whitened import Whitened

__all__ = [
    "ConstrainedMechanism",
    "Exponential",
    "FrankWolfe",
    "MirrorDescent",
    "NoisyGradient",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Whitened",
]
