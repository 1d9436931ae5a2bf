"""Descents, one for each family of losses: noisy steps within one budget."""
