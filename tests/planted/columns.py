"""Bugs of what a schema makes of columns and features."""

from planted.bug import Bug

BUGS: tuple[Bug, ...] = ()
