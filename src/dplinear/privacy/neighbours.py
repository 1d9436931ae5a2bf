"""Which two tables a guarantee keeps apart. Always explicit, never guessed from the data."""

from enum import StrEnum
from typing import Any

from dplinear import arguments


class Neighbours(StrEnum):
    """A neighbour relation.

    `ADD_REMOVE`: one row more or less; the number of rows is private.
    `REPLACE`: one row changed; the number of rows is public.
    `ELEMENT`: one cell changed by at most a public amount; the number of rows is public.
    `ROW_L1`, `ROW_L2`: one row changed by at most a public L1 or L2 distance; so is theirs.
    """

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"
    ELEMENT = "element"
    ROW_L1 = "row_l1"
    ROW_L2 = "row_l2"

    @property
    def rows_are_public(self) -> bool:
        """Whether neighbours have equally many rows, so that their number tells nothing of one."""
        return self is not Neighbours.ADD_REMOVE

    @classmethod
    def parse(
        cls,
        value: Any,
        where: str,
        allowed: "tuple[Neighbours, ...] | None" = None,
    ) -> "Neighbours":
        """Return the relation named by `value`, if `where` supports it."""
        options = tuple(cls) if allowed is None else allowed
        if isinstance(value, cls) and value in options:
            return value
        return cls(arguments.choice(value, "neighbours", where, options))
