"""Figure 1 of Sheffet 2015 (arXiv 1507.00056v1): six ways to a private regression.

`python -m dplinear.papers.sheffet --output DIR` draws it; docs/experiments/sheffet.md has the
result and what agrees with the paper.

`release_moments` and `release_sketch` make releases with the published noise, whose
certificates say what really holds.
"""

from dplinear.papers.sheffet.release import release_moments, release_sketch

__all__ = ["release_moments", "release_sketch"]
