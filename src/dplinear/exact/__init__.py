"""Statistics of bounded rows, exact on integers: the same bits in any order, on any engine.

`grid.py` rounds rows to integers, `shape.py` is what is public about them; `row_sums.py` is the
contract of a sum over rows, `gram.py` the matrix of second moments, `totals.py` how they add up.
"""
