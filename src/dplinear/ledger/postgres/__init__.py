"""Budgets on a PostgreSQL server."""
