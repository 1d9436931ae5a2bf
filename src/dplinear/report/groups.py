"""What a page says of groups: one table, with a row for each."""

from typing import Any

from dplinear.analyst.releases.groups import Groups
from dplinear.arguments import ArgumentError
from dplinear.privacy.units import size
from dplinear.report.panels import Panel, Table
from dplinear.report.words import significant

_MOST = 8  # numbers of each group
_TOLD = {
    "moments": ("Means", "Means of columns, in their own units."),
    "mean": ("Means", "Means of columns, in their own units."),
    "covariance": ("Spreads", "Standard deviations of columns, in their own units."),
    "model": ("Coefficients", "Coefficients of one model for each group."),
}
_LISTED = "These groups were chosen in public; rows of all other levels are in none of them."


def groups_panel(groups: Groups[Any]) -> Panel:
    """Return the table of all groups: about how large each is, and its first numbers."""
    title, text = _TOLD[groups.of]
    if groups.listed:
        text = f"{text} {_LISTED}"
    found = [_numbers(release) for release in groups.releases]
    names = tuple(next((own for own in found if own), {}))[:_MOST]
    unit, weight = groups.certificate.unit, groups.schema.weight_name
    rows = []
    for label, count, own in zip(groups.labels(), groups.counts().values(), found, strict=True):
        about = "not released" if count is None else size(count, unit, weight=weight)
        rows.append((label, about, *(significant(own[n]) if own else "hidden" for n in names)))
    heads = (", ".join(groups.by), "size", *names)
    note = "A group whose numbers are hidden has too few rows for the noise."
    hidden = note if not all(found) else ""
    return Panel(
        f"{title} by {', '.join(groups.by)}",
        text,
        (),
        Table(title, heads, tuple(rows), note=hidden),
    )


def _numbers(release: Any) -> dict[str, float]:
    """Return the first numbers of a group's release by their names; none where noise hides them."""
    if release.kind == "moments":
        try:
            return dict(release.mean().to_dict())
        except ArgumentError:  # without an intercept, or with fewer rows than noise
            return {}
    if release.kind == "mean":
        return dict(release.mean.to_dict())
    if release.kind == "covariance":
        return {name: max(release[name, name], 0.0) ** 0.5 for name in release.names}
    return {"intercept": release.intercept, **release.coefficients.to_dict()}
