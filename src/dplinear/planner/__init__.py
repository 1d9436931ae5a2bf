"""What a budget will buy, before it is spent: simulated tables only, nothing private is read.

`populations` draws tables, `simulated` holds one as solvers see it, `forecast` predicts the error
of each method, and `tuning` compares the descent's settings with their neighbours. For models in a
constraint set, `compression` is the rule in closed form, `texts` draws tables of many features,
`trials` lets learners try one, and `compressed_forecast` predicts the risk in each dimension.
`bits` says what bits a cell mean in other words.
"""

from dplinear.planner.forecast import Expected, Forecast, forecast

__all__ = ["Expected", "Forecast", "forecast"]
