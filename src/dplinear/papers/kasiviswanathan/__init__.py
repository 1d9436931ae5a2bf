"""The experiments that Kasiviswanathan and Jin 2016 left out: private learning with many features.

`python -m dplinear.papers.kasiviswanathan --output DIR` runs them;
docs/experiments/kasiviswanathan.md has the result.
"""
