"""What a budget will buy, before it is spent: simulated tables only, nothing private is read.

`populations` draws tables, `simulated` holds one as solvers see it, `forecast` predicts the error
of each method, and `tuning` compares the descent's settings with their neighbours.
"""

from dplinear.planner.forecast import Expected, Forecast, forecast

__all__ = ["Expected", "Forecast", "forecast"]
