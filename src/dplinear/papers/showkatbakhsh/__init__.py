"""Figures 1 to 3 of Showkatbakhsh, Karakus and Diggavi 2018: least squares on protected cells.

`python -m dplinear.papers.showkatbakhsh --output DIR` draws them; their page,
docs/experiments/showkatbakhsh.md, has the results and which of the paper's claims survive noise
that does protect.

`release_rows` and `release_sketch` make releases with the published noise, whose
certificates say what really holds.
"""

from dplinear.papers.showkatbakhsh.release import release_rows, release_sketch

__all__ = ["release_rows", "release_sketch"]
