"""What a budget will buy, before it is spent: simulated tables only, nothing private is read.

`populations` draws tables, `simulated` holds one as solvers see it, `forecast` predicts the error
of each method, and `tuning` compares the descent's settings with their neighbours. For models in a
constraint set, `compression` is the rule in closed form, `texts` draws tables of many features,
`trials` lets learners try one, and `compressed_forecast` predicts the risk in each dimension.
`bits` says what bits a cell mean in other words.

`plan` is the short way to all of it: the error of every mechanism, from closed forms and a table of
simulated errors. `facts` has its arguments, `questions` what one may ask and the contract, with
`regressions` (looked up by `lookup` on the `curves` that `table` simulates), `matrix_errors`,
`locations`, `principal_components` and `row_distances` as answers. `lines` ranks them, `search`
finds the budget or the rows for an error, `units` has the errors of people with several rows.
"""

from dplinear.planner.forecast import Expected, Forecast, forecast

__all__ = ["Expected", "Forecast", "forecast"]
