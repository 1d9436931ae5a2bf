"""What suggested bounds, levels and numbers of rows say, in panels."""

from dplinear.analyst.releases.bounds import SuggestedBounds
from dplinear.analyst.releases.levels import SuggestedLevels
from dplinear.analyst.releases.rows_per_unit import SuggestedRowsPerUnit
from dplinear.report.panels import Content, Panel, Table


def bounds_content(release: SuggestedBounds) -> Content:
    """Return what is to be said of suggested bounds."""
    rows = tuple(
        (name, f"{low:,.6g}", f"{high:,.6g}", "found" if release.found[name] else "as given")
        for name, (low, high) in release.bounds.items()
    )
    table = Table("Bounds", ("column", "low", "high", "how"), rows, left=(3,))
    return Content(
        title="Bounds of columns",
        lede=(
            "A range for each column that holds nearly all of its values, found with noise. It can "
            "serve as the public bounds of later releases."
        ),
        size="number of rows not released",
        rows=None,
        columns=None,
        panels=(Panel("Bounds", "", (), table),),
    )


def levels_content(release: SuggestedLevels) -> Content:
    """Return what is to be said of suggested levels."""
    unit = release.certificate.unit
    rows = tuple(
        (name, level, f"{count:,.0f}")
        for name, levels in release.found.items()
        for level, count in zip(levels, release.counts[name], strict=True)
    )
    held = "rows" if unit is None else f"units (by {unit!r})"
    table = Table("Levels", ("column", "level", f"about how many {held}"), rows, left=(1,))
    return Content(
        title="Levels of columns",
        lede=(
            f"The levels of each column that many {held} hold, found with noise. Levels below "
            f"about {release.threshold:,.0f} are not told. They can serve as the public levels of "
            "later releases, in which all others are one level more."
        ),
        size="number of rows not released",
        rows=None,
        columns=None,
        panels=(Panel("Levels", "", (), table),),
    )


def rows_per_unit_content(release: SuggestedRowsPerUnit) -> Content:
    """Return what is to be said of a suggested number of rows per unit."""
    table = Table("Units, with noise", ("rows of a unit", "units"), tuple(release.histogram()))
    return Content(
        title="Rows per unit",
        lede=(
            f"How many rows units have, counted with noise of standard deviation "
            f"{release.deviation:.3g}. In the release that was planned, a unit should count as at "
            f"most {release.rows_per_unit} {'row' if release.rows_per_unit == 1 else 'rows'}."
        ),
        size="number of rows not released",
        rows=None,
        columns=None,
        panels=(Panel("Numbers of rows", "", (), table),),
    )
