"""Bugs of how a table of some library or file becomes rows."""

from planted.bug import Bug

BUGS: tuple[Bug, ...] = ()
