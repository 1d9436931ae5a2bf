"""Labels of two public classes, as numbers: 1 for the second, 0 for anything else."""

from fractions import Fraction

import numpy as np

from dplinear.analyst.releases.units import Label, read_classes
from dplinear.arguments import rejection
from dplinear.arrays import Array, Floats, kind_of
from dplinear.schema.cells import codes_of, objects_of
from dplinear.schema.columns import Category, check_levels


def read_labels(classes: object, where: str) -> tuple[Label, Label]:
    """Return the two public classes of labels that are yet to be read, if they stay apart."""
    read = read_classes(classes, where)
    check_levels(read, "classes", where)
    return read


def check_kind(labels: object, second: object, where: str, parameter: str = "y") -> None:
    """Raise for a NumPy array whose dtype, a public fact, cannot hold the second class.

    The dtype of a frame's column is none: its cells may have chosen it, so it may be any.
    """
    if isinstance(labels, np.ndarray) and not _may_hold(labels, second):
        rule = f"of labels such as {second!r}"
        hint = "say which two labels there are: classes=(no, yes), the second one being explained."
        raise rejection(parameter, where, rule, kind_of(labels.dtype), hint)


def checked_labels(given: object, labels: Array, second: object, where: str) -> Array:
    """Return the labels that `given` was read as, of a dtype that no gate refuses.

    Promises: raises for what was given, as `check_kind` does, and for nothing that was made of it.
    """
    check_kind(given, second, where)
    return labels if _may_hold(labels, second) else objects_of(labels)


def _may_hold(labels: Array, second: object) -> bool:
    """Return whether the dtype of labels is one that the second class goes with."""
    kind = labels.dtype.kind
    any_kind = kind == "O" or isinstance(labels, np.ma.MaskedArray)
    return any_kind or (kind in "SU") == isinstance(second, str)


def is_second(labels: Array, second: Label) -> Floats:
    """Return 1 where a label is the second class, and 0 elsewhere; no label raises.

    Promises: a label counts by what it means, as the levels of a category do.
    """
    level = second if isinstance(second, str) else Fraction(second)
    return np.asarray(codes_of(Category((level,)), labels) == 0, np.float64)
