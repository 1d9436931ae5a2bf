"""dplinear: differentially private linear learning.

One rule: a mechanism maps (statistics of bounded rows, a guarantee) to a release, and nothing else
crosses the wall between those who hold a table and those who analyse what was published.
"""

__version__ = "0.1.0.dev0"
