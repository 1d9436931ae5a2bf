"""The paper's remark on principal components: they keep variance, and regression needs the rest.

Sheffet 2015, §6: with several regressions in one table, keeping its k principal components distorts
the coefficients even without privacy.
"""

import numpy as np

from dplinear.arguments import integer
from dplinear.papers.sheffet.design import Design

_SINGULAR = 1e-9


def component_error(design: Design, redundant: int, k: int) -> float:
    """Return |β̃ − β|/|β| of least squares on the k principal components of features and target.

    Without noise and with infinitely many rows: what remains is the distortion itself. Where the
    components leave the features singular, β̃ is the shortest solution.
    """
    indices = design.indices(redundant)
    k = integer(k, "k", "component_error", low=1, high=len(indices))
    values, vectors = np.linalg.eigh(design.covariance[np.ix_(indices, indices)])
    kept = (vectors[:, -k:] * values[-k:]) @ vectors[:, -k:].T
    inverse = np.linalg.pinv(kept[:-1, :-1], rcond=_SINGULAR, hermitian=True)
    truth = design.truth(redundant)
    return float(np.linalg.norm(inverse @ kept[:-1, -1] - truth) / np.linalg.norm(truth))
