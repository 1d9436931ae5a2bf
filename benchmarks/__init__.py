"""Measurements: ratios within one run, and accuracy beside other methods."""
