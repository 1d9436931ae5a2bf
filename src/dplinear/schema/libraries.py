"""Which library a table or a column is of: by what its class descends from.

A subclass is written in a module of its own, and its cells are its library's all the same: pandas'
export of a frame that GeoPandas or a user derived raises over them as pandas' own does.
"""

from typing import Any

_KNOWN = frozenset({"pandas", "polars", "pyarrow", "duckdb", "dask", "pyspark"})
_ALSO = {"dask_expr": "dask"}
_WRAPPER = "narwhals"


def _packages(data: object) -> list[str]:
    """Return the packages of a class and of its ancestors, without a leading underscore."""
    modules = (str(kind.__module__) for kind in type(data).__mro__)
    return [module.partition(".")[0].lstrip("_") for module in modules]


def library_of(data: object) -> str:
    """Return the library among those that are read here; nothing for any other."""
    named = (_ALSO.get(package, package) for package in _packages(data))
    return next((library for library in named if library in _KNOWN), "")


def unwrap(data: Any) -> Any:
    """Return what Narwhals holds in a frame or a column of its own; anything else as it is.

    Its export is that of what it holds, with none of the care that this takes.
    """
    return data.to_native() if _WRAPPER in _packages(data) and hasattr(data, "to_native") else data


def plain_frame(frame: Any) -> Any:
    """Return a frame of a class that descends from pandas' as pandas' own, its cells shared.

    Requires: a frame of pandas.
    """
    from pandas import DataFrame

    return frame if type(frame) is DataFrame else DataFrame(frame)
