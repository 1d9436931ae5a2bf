"""The whole way on a made-up table: plan, spend, release, ask, report."""

from dplinear.demo.stays import stays
from dplinear.demo.tour import tour
from dplinear.demo.visits import SCHEMA, visits

__all__ = ["SCHEMA", "stays", "tour", "visits"]
