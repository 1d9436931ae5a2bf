"""What share of a column's cells was filled in: names of the released counts, and their words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dplinear.analyst.design_effect import noise_of
from dplinear.schema import Schema
from dplinear.schema.columns import Category
from dplinear.schema.describe import describe_filling
from dplinear.schema.filling import filled_columns

FILLED = "filled_in"
SENSITIVITY = "sensitivity"  # of second moments and all sums beside them, in the cells' units
COLUMNS = "columns_filled_in"  # how many columns have cells counted
_PREFIX = f"{FILLED}:"
_LONGEST = 200  # letters of a column's name in that of a parameter
_MOST = 100  # counts that a certificate tells: those that stand out most
_CLEAR = 3  # deviations of noise, from which a share is worth a word
_LARGE = 0.05  # of a column: a share that pulls slopes


def filled_name(schema: Schema, column: str) -> str:
    """Return the name of the count of a column's cells that were filled in.

    Promises: no other column's count, nor the noise of one, has it.
    """
    taken = column.startswith("#") or column.endswith(noise_of(""))
    if len(column) <= _LONGEST and not taken:
        return f"{_PREFIX}{column}"
    return f"{_PREFIX}#{schema.columns.index(column) + 1}"


def filled_names(schema: Schema) -> tuple[str, ...]:
    """Return the names of all such counts, in the order in which they are made."""
    return tuple(filled_name(schema, column) for column in filled_columns(schema))


def tell_sums(found: Mapping[str, tuple[float, float]], least: float = 0.0) -> dict[str, float]:
    """Return what a certificate says of sums, by name, each a noisy value and its deviation.

    Promises: all sums, none below `least`; of counts of filled cells the hundred that stand out
    most.
    """
    cells = [name for name in found if name.startswith(_PREFIX)]
    cells.sort(key=lambda name: found[name][0] / found[name][1], reverse=True)
    beyond = set(cells[_MOST:])
    told = {name: each for name, each in found.items() if name not in beyond}
    said = {name: max(value, least) for name, (value, _) in told.items()}
    return said | {noise_of(name): sigma for name, (_, sigma) in told.items()}


def is_count_of_cells(name: str) -> bool:
    """Return whether a parameter is such a count, or its noise."""
    return name.startswith(_PREFIX)


@dataclass(frozen=True)
class Share:
    """What part of a column's cells was filled in: about `share`, with noise of `error`."""

    column: str
    share: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether it stands out from its noise."""
        return self.share > _CLEAR * self.error

    @property
    def large(self) -> bool:
        """Whether it stands out, and pulls slopes."""
        return self.clear and self.share >= _LARGE

    @property
    def hidden(self) -> bool:
        """Whether noise may hide a share that pulls slopes."""
        return not self.clear and _CLEAR * self.error >= _LARGE


def filled_shares(
    schema: Schema, parameters: Mapping[str, Any], count: float | None, scale: float = 1.0
) -> list[Share]:
    """Return what a certificate tells of each column that may have cells filled in.

    Requires: `count`, about how many rows were counted, or the sum of their weights, of which 1 in
    sums is `scale`.
    """
    if count is None or not count > 0:
        return []
    found = []
    for column in filled_columns(schema):
        name = filled_name(schema, column)
        cells, noise = parameters.get(name), parameters.get(noise_of(name))
        if isinstance(cells, float) and isinstance(noise, float):
            share, error = (each * scale / count for each in (cells, noise))
            found.append(Share(column, min(share, 1.0), error))
    return found


def filled_notes(schema: Schema, shares: Sequence[Share]) -> list[str]:
    """Return sentences on columns of which cells were filled in, and on what that does."""
    notes = [_sentence(schema, share) for share in shares if share.clear]
    large = [each.column for each in shares if each.large]
    numeric = [name for name in large if not isinstance(schema.declared[name], Category)]
    if numeric:
        listed = " and ".join(repr(name) for name in numeric)
        notes.append(
            f"Slopes of {listed} are pulled towards 0 by what was filled in. To leave such rows "
            'out, declare missing = "leave_out"; to tell them apart, missing_indicator.'
        )
    hidden = [each for each in shares if each.hidden]
    if hidden:
        listed = ", ".join(repr(each.column) for each in hidden)
        most = max(each.error for each in hidden)
        notes.append(
            f"How much of {listed} was filled in, noise hides: its share is known to ±{most:.0%}."
        )
    return notes


def _sentence(schema: Schema, share: Share) -> str:
    what = schema.declared[share.column]
    found = f"About {share.share:.1%} of {share.column!r} (noise: ±{share.error:.1%})"
    if isinstance(what, Category):
        return f"{found} holds none of its levels, and was counted as {describe_filling(what)!r}."
    return f"{found} was missing, and was filled in with {describe_filling(what)}."
