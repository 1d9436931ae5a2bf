"""The figures of Ediger 2021, "CoinPress Extension: Linear Regression", and what lies beyond them.

`python -m dplinear.papers.ediger --output DIR` draws them; docs/experiments/ediger.md has the
results and what agrees with the paper.

`release_model` makes a release with the published noise; its certificate says what
really holds.
"""

from dplinear.papers.ediger.release import release_model

__all__ = ["release_model"]
