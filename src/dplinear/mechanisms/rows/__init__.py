"""Mechanisms that release rows: one for each of the table's, in their order."""
