"""The library's own estimator as it stands, by the rivals' protocol."""

import warnings

import numpy as np

from benchmarks.rivals.common import Array, Line
from dplinear.estimators import PrivateLinearRegression
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP, Guarantee


def fit(rows: Array, target: Array, guarantee: Guarantee, generator: simulation.Generator) -> Line:
    """Return what `PrivateLinearRegression` finds, given nothing but guarantee and bounds.

    Promises: the guarantee, add_remove; the noise is seeded from `generator`.
    """
    given = guarantee if not isinstance(guarantee, ApproxDP) else None
    model = PrivateLinearRegression(
        epsilon=guarantee.epsilon if isinstance(guarantee, ApproxDP) else None,
        delta=guarantee.delta if isinstance(guarantee, ApproxDP) else None,
        guarantee=given,
        bounds=(-1, 1),
        target_bounds=(-1, 1),
    )
    with warnings.catch_warnings(), simulation.door(int(generator.integers(2**32))):
        warnings.simplefilter("ignore", UserWarning)  # that a model says nothing shows in its risk
        model.fit(rows, target)
    return Line(float(model.intercept_), np.asarray(model.coef_, np.float64))
