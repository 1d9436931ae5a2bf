"""Numbers with names: small results that print well, in text and in a notebook."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dplinear.analyst import notebook
from dplinear.analyst.regression.names import unknown
from dplinear.arrays import Floats

_SHOWN = 12  # columns
_LINES = 60


@dataclass(frozen=True, eq=False, repr=False)
class NamedVector:
    """One number for each name: `vector["age"]`, or `values` as an array."""

    names: tuple[str, ...]
    values: Floats = field()

    def __getitem__(self, name: str) -> float:
        return float(self.values[_index_of(self.names, name)])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:  # noqa: FBT001 - NumPy's protocol
        return _array(self.values, dtype, copy=copy)

    def to_dict(self) -> dict[str, float]:
        """Return plain numbers by name."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    def __repr__(self) -> str:
        return _text(("",), self.names, self.values[:, None])

    def _repr_html_(self) -> str:
        return _html(("",), self.names, self.values[:, None])


@dataclass(frozen=True, eq=False, repr=False)
class NamedMatrix:
    """One number for each pair of names: `matrix["age", "bmi"]`, or `values` as an array."""

    names: tuple[str, ...]
    values: Floats = field()

    def __getitem__(self, pair: tuple[str, str]) -> float:
        row, column = pair
        return float(self.values[_index_of(self.names, row), _index_of(self.names, column)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:  # noqa: FBT001 - NumPy's protocol
        return _array(self.values, dtype, copy=copy)

    def __repr__(self) -> str:
        return _text(self.names, self.names, self.values)

    def _repr_html_(self) -> str:
        return _html(self.names, self.names, self.values)


def _array(values: Floats, dtype: Any, *, copy: bool | None) -> Floats:
    same = dtype is None or np.dtype(dtype) == values.dtype
    return values if same and not copy else values.astype(dtype or values.dtype)


def _index_of(names: tuple[str, ...], name: object) -> int:
    if name not in names:
        raise unknown(name, names, "name", "a result", "one of its names")
    return names.index(str(name))


def _text(heads: tuple[str, ...], names: tuple[str, ...], values: Floats) -> str:
    """Return a table of numbers, cut to a screen."""
    lines_left_out = len(names) - _LINES
    if lines_left_out > 1:
        names, values = names[:_LINES], values[:_LINES]
    digits = 6 if values.shape[1] == 1 else 4
    cells = [[f"{value:.{digits}g}" for value in row[:_SHOWN]] for row in values]
    widths = [
        max(len(text) for text in column) for column in zip(heads[:_SHOWN], *cells, strict=True)
    ]
    first = max(map(len, names), default=0)
    rows = zip(("", *names), (heads[:_SHOWN], *cells), strict=True)
    lines = [
        f"{name:<{first}}  "
        + "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
        for name, row in rows
    ]
    left_out = len(heads) - _SHOWN
    ending = [f"({left_out:,} more columns: see .values)"] if left_out > 0 else []
    if lines_left_out > 1:
        ending.append(f"({lines_left_out:,} more lines: see .names and .values)")
    return "\n".join([line for line in lines if line.strip()] + ending)


def _html(heads: tuple[str, ...], names: tuple[str, ...], values: Floats) -> str:
    rows = [
        [name, *(f"{value:.4g}" for value in row)] for name, row in zip(names, values, strict=True)
    ]
    return notebook.table(["", *heads] if any(heads) else [], rows)
