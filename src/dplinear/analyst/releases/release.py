"""What all releases share, whatever their kind."""

import os
from typing import Protocol, runtime_checkable

from dplinear.analyst.releases.certificate import Certificate


@runtime_checkable
class Release(Protocol):
    """What a gate returned, or `load` read: public, and never to change.

    Each kind has more of its own: regressions, predictions, rows.
    """

    @property
    def kind(self) -> str:
        """The kind of release, as files name it and as `load(path, kind=…)` takes it."""

    @property
    def certificate(self) -> Certificate:
        """What the release guarantees, and how that was kept."""

    @property
    def rows(self) -> int | None:
        """The number of rows of the table, where that is public; otherwise None."""

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to a file that `load` reads again, equal to the bit."""

    def describe(self) -> str:
        """Return in a few lines what was released and, at the end, its certificate."""

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
