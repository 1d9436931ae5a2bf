"""Randomness for private releases: cryptographic bits, exact integers, exact real numbers.

entropy     the generator that protects data; no seed, safe across threads and forks
discrete    exact discrete Laplace and Gaussian on the integers, vectorised
selection   the exponential mechanism on a finite list, exactly
normals     exact standard normal numbers, with as many digits as are asked for (`reals`)
chi         exact chi numbers, likewise; `bartlett` and `spherical` are made of both
simulation  the one seeded door, for tests, bootstrap and planning

Beneath `discrete` and `selection`: `inversion` (exact comparisons) and `fixed_point` (fast ones,
with bounds).
"""
