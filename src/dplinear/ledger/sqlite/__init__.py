"""Budgets in a SQLite file."""
