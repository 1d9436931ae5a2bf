"""Mechanisms: a bounded statistic and a guarantee in, released numbers out. One file each."""

from dplinear.mechanisms.contract import Mechanism

MECHANISMS: dict[str, type[Mechanism]] = {}
