"""Mechanisms of other packages: found by their entry points, imported when first asked for.

A package names its mechanism in its own `pyproject.toml`:

    [project.entry-points."dplinear.mechanisms"]
    laplace = "my_package:SymmetricLaplace"
"""

import warnings
from functools import cache
from importlib.metadata import entry_points

GROUP = "dplinear.mechanisms"


@cache
def installed() -> tuple[object, ...]:
    """Import what installed packages name, once; return it.

    Promises: a package that cannot be imported is left out, with a warning that names it.
    """
    found = []
    for entry in entry_points(group=GROUP):
        try:
            found.append(entry.load())
        except Exception as error:  # noqa: BLE001 - whatever another package raises
            told = f"The mechanism {entry.name!r} ({entry.value}) could not be imported: {error}"
            warnings.warn(told, RuntimeWarning, stacklevel=2)
    return tuple(found)
