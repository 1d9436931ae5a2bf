"""Randomness for private releases: cryptographic bits, exact grid noise, Wishart matrices.

entropy     the generator that protects data; no seed, safe across threads and forks
discrete    exact discrete Laplace and Gaussian on the integers, vectorised
selection   the exponential mechanism on a finite list, exactly
wishart     normal, chi-square, Wishart and inverse-Wishart draws, Gaussian sketches (idealised)
simulation  the one seeded door, for tests, bootstrap and planning

Beneath `discrete` and `selection`: `inversion` (exact comparisons) and `fixed_point` (fast ones,
with bounds).
"""
