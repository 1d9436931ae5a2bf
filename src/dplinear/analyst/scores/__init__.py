"""Scores of a model on private rows, from released sums: all of it post-processing."""
