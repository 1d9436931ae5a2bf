"""Figures 1 to 4 and Table 1 of Dhaliwal et al. 2019: clustering rows that were made private.

`python -m dplinear.papers.dhaliwal --output DIR` draws them; docs/experiments/dhaliwal.md has
the results and what agrees with the paper.

`release_rows` makes a release with the published noise; its certificate says what
really holds.
"""

from dplinear.papers.dhaliwal.release import release_rows

__all__ = ["release_rows"]
