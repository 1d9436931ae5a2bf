"""Privacy bugs that this library could have, each with the one test that must see it.

`good` stands exactly once in its file; the bug is `bad` in its place. Most of them are bugs that
some library or paper has had, or this one; all would change what is promised and nothing that a
user sees.
"""

from planted import (
    cells,
    columns,
    constrained_units,
    files,
    groups,
    ledgers,
    left_out,
    mechanisms,
    scores,
    servers,
    sums,
    tables,
    units,
)
from planted.bug import Bug

BUGS: tuple[Bug, ...] = (
    *mechanisms.BUGS,
    *ledgers.BUGS,
    *servers.BUGS,
    *columns.BUGS,
    *cells.BUGS,
    *tables.BUGS,
    *sums.BUGS,
    *units.BUGS,
    *constrained_units.BUGS,
    *left_out.BUGS,
    *groups.BUGS,
    *scores.BUGS,
    *files.BUGS,
)

__all__ = ["BUGS", "Bug"]
