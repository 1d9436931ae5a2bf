"""One regression, as linear algebra on a released matrix: what is solved, and what is reported.

Working coordinates are linear combinations of the released cells: the features (the intercept
first, if there is one), then the target. Their moments are `transform @ M @ transform.T`. The
solution b of the working problem becomes coefficients in the columns' own units by an affine map.
"""

from dataclasses import dataclass

from dplinear.analyst.noise_models.matrices import NoiseModel
from dplinear.arrays import Floats


@dataclass(frozen=True, eq=False)
class Problem:
    """Least squares of the last working coordinate on the others.

    `whole`: the estimate of G, d x d, in cells, unbiased unless repaired (or a block of it that has
    all the problem needs, and then `noise_model` is that of the block); `transform`: k x d, with
    k = p + 1; `penalty`: the p numbers added to the diagonal of the features' moments (0 for the
    intercept); `readout` (m x p) and `offset` (m): reported coefficients = offset + readout @ b, in
    the order of `names` (the intercept first, if there is one). `count` is the number of rows,
    estimated or public. `noise_model` tells how `whole` spreads when it is not repaired. `repeats`
    is how many rows may be of one person where rows count as independent otherwise, as in joined
    tables: sampling variances are that many times as large, at the most.
    """

    whole: Floats
    noise_model: NoiseModel
    transform: Floats
    penalty: Floats
    readout: Floats
    offset: Floats
    names: tuple[str, ...]
    target: str
    count: float
    repeats: int = 1

    @property
    def gram(self) -> Floats:
        """The moments of the working coordinates: k x k, the target last."""
        return self.transform @ self.whole @ self.transform.T
