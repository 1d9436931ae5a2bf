"""Bugs of files, outputs and messages."""

from planted.bug import Bug

BUGS: tuple[Bug, ...] = ()
