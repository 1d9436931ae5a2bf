"""Learners over constraint sets, by name. Their contract is in `contract.py`.

`noisy_gradient`, `mirror_descent`, `whitened`: chains of noisy sums. `frank_wolfe`: extreme points,
chosen by the exponential mechanism. `objective_perturbation`, `output_perturbation`: one minimum,
with noise in the objective or after it. `exponential`: one draw. `common.py` and `perturbation.py`
have what some of them share.
"""

from dplinear.erm.learners.contract import Learner
from dplinear.erm.learners.exponential import Exponential
from dplinear.erm.learners.frank_wolfe import FrankWolfe
from dplinear.erm.learners.mirror_descent import MirrorDescent
from dplinear.erm.learners.noisy_gradient import NoisyGradient
from dplinear.erm.learners.objective_perturbation import ObjectivePerturbation
from dplinear.erm.learners.output_perturbation import OutputPerturbation
from dplinear.erm.learners.whitened import Whitened

LEARNERS: dict[str, type[Learner]] = {
    kind.name: kind
    for kind in (
        NoisyGradient,
        Whitened,
        FrankWolfe,
        MirrorDescent,
        ObjectivePerturbation,
        OutputPerturbation,
        Exponential,
    )
}

__all__ = [
    "LEARNERS",
    "Exponential",
    "FrankWolfe",
    "Learner",
    "MirrorDescent",
    "NoisyGradient",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Whitened",
]
