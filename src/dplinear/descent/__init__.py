"""Descents, one for each family of losses: noisy steps on a chain of sums."""
