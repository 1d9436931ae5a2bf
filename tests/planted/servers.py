"""Bugs of ledgers on a server."""

from planted.bug import Bug

BUGS: tuple[Bug, ...] = ()
