"""AdaSSP with the constants of Wang 2018 (arXiv 1803.02596v2).

`release_model` makes a release with the published noise; its certificate says what
really holds.
"""

from dplinear.papers.wang.release import release_model

__all__ = ["release_model"]
