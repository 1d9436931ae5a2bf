"""Principal components of a released covariance."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dplinear.analyst.results import NamedVector
from dplinear.arguments import rejection
from dplinear.arrays import Floats


@dataclass(frozen=True, eq=False, repr=False)
class PrincipalComponents:
    """Directions of greatest variance, as scikit-learn's PCA gives them.

    `components` has a row for each direction, of length 1, its largest entry positive;
    `explained_variance` is the variance along each, `explained_variance_ratio` its share of all.
    Features are centred by `mean`, then divided by `scale` (ones, unless standardised).
    """

    names: tuple[str, ...]
    components: Floats
    explained_variance: Floats
    explained_variance_ratio: Floats
    mean: NamedVector
    scale: Floats = field()

    def transform(self, data: Any) -> Floats:
        """Return the coordinates of rows (an array with the features in the order of `names`)."""
        rows = np.asarray(data, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.names):
            rule = f"of shape (rows, {len(self.names)}): {', '.join(self.names)}"
            raise rejection("data", "transform", rule, f"shape {rows.shape}")
        return np.asarray((rows - self.mean.values) / self.scale @ self.components.T)

    def __repr__(self) -> str:
        lines = [f"{len(self.components)} principal components of {len(self.names)} features"]
        shares = zip(self.components, self.explained_variance_ratio, strict=True)
        for number, (direction, share) in enumerate(shares, 1):
            largest = np.argsort(-np.abs(direction), kind="stable")[:4]
            terms = ", ".join(f"{direction[i]:+.3f} {self.names[i]}" for i in largest)
            lines.append(f"{number}: {share:.1%} of the variance: {terms}")
        return "\n".join(lines)


def principal_components(
    covariance: Floats, mean: NamedVector, scale: Floats, count: int
) -> PrincipalComponents:
    """Return the first `count` components of a covariance (of features divided by `scale`)."""
    values, vectors = np.linalg.eigh(covariance)
    order = np.argsort(-values, kind="stable")[:count]
    components = vectors.T[order]
    largest = np.argmax(np.abs(components), axis=1)
    components = components * np.sign(components[np.arange(len(components)), largest])[:, None]
    variance = np.maximum(values, 0.0)
    total = float(variance.sum()) or 1.0
    chosen = variance[order]
    return PrincipalComponents(mean.names, components, chosen, chosen / total, mean, scale)
