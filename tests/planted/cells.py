"""Bugs of how one cell is read."""

from planted.bug import Bug

BUGS: tuple[Bug, ...] = ()
