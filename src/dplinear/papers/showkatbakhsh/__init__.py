"""Figures 1 to 3 of Showkatbakhsh, Karakus and Diggavi 2018: least squares on protected cells.

`python -m dplinear.papers.showkatbakhsh --output DIR` draws them; their page,
docs/experiments/showkatbakhsh.md, has the results and which of the paper's claims survive noise
that does protect.
"""
