"""Means, covariances and regressions of rows of unknown scale: CoinPress, on exact sums.

`windows.py` shows the same rows on finer grids, `locate.py` finds where a column's cells are;
`mean.py` and `covariance.py` are the steps, with radii from `radii.py`. `methods.py` has them as
methods with a guarantee.
"""
