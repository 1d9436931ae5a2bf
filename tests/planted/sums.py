"""Bugs of sensitivities that are derived and not verified."""

from planted.bug import Bug

BUGS: tuple[Bug, ...] = ()
