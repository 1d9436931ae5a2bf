"""Noisy sums within one budget: each may depend on what the earlier ones released."""
