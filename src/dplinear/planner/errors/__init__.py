"""Predicted errors: closed forms, and simulations kept in a table."""
