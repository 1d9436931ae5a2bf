"""Labels of two public classes, as numbers: 1 for the second, 0 for anything else."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dplinear.arguments import rejection
from dplinear.schema.cells import Floats

Array = npt.NDArray[Any]


def check_kind(labels: Array, second: object, where: str) -> None:
    """Raise for an array whose dtype, a public fact, cannot hold the second class."""
    kind = labels.dtype.kind
    if isinstance(labels, np.ma.MaskedArray) or kind == "O":
        return
    if (kind in "SU") != isinstance(second, str):
        rule = f"of labels such as {second!r}"
        hint = "say which two labels y has: classes=(no, yes), the second one being explained."
        raise rejection("y", where, rule, f"dtype {labels.dtype}", hint)


def is_second(labels: Array, second: object) -> Floats:
    """Return 1 where a label is the second class, and 0 elsewhere; no label raises."""
    kind = labels.dtype.kind
    if isinstance(labels, np.ma.MaskedArray):
        labels, kind = np.ma.filled(labels.astype(object), None), "O"
    if kind == "O":
        return np.array([_same(label, second) for label in labels.tolist()], float).reshape(-1)
    wanted = second.encode() if kind == "S" and isinstance(second, str) else second
    return np.asarray(labels == wanted, float)


def _same(label: Any, second: Any) -> bool:  # noqa: ANN401 - any object may be in a table
    try:
        return bool(label == second)
    except Exception:  # noqa: BLE001 - an error would tell what a row holds
        return False
