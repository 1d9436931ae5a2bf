"""A public projection that the caller gives as a matrix."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Floats

_LARGEST = 1e100  # so that squares, and sums of them, are floats


@dataclass(frozen=True, eq=False)
class MatrixMap:
    """Φ, of shape (`target`, `source`), as it is given: public, and made without the rows.

    Requires: finite numbers, in two dimensions.
    """

    matrix: npt.ArrayLike = field(repr=False)
    source: int = field(init=False)
    target: int = field(init=False)

    def __post_init__(self) -> None:
        where, rule = "MatrixMap", "a matrix of finite numbers, with a row for each projected one"
        try:
            with np.errstate(all="ignore"):  # what no float holds becomes infinite, and is refused
                matrix = np.array(self.matrix, np.float64)
        except Exception:  # noqa: BLE001 - whatever NumPy, or the object itself, says of it
            raise wrong_type("matrix", where, rule, type(self.matrix).__name__) from None
        if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
            raise rejection("matrix", where, rule, f"shape {matrix.shape}")
        if np.abs(matrix).max() > _LARGEST:
            raise rejection("matrix", where, f"of numbers up to {_LARGEST:g}", "larger ones")
        matrix.flags.writeable = False
        target, source = matrix.shape
        for name, fact in (("matrix", matrix), ("source", source), ("target", target)):
            object.__setattr__(self, name, fact)

    def forward(self, vector: Floats) -> Floats:
        """Return Φθ."""
        return np.asarray(np.asarray(self.matrix) @ vector)

    def adjoint(self, vector: Floats) -> Floats:
        """Return Φᵀg."""
        return np.asarray(np.asarray(self.matrix).T @ vector)

    def facts(self) -> dict[str, Any]:
        """Return its size, and a digest that tells it from others."""
        digest = hashlib.sha256(np.asarray(self.matrix).astype("<f8").tobytes()).hexdigest()
        return {"kind": "matrix", "target": self.target, "source": self.source, "sha256": digest}
