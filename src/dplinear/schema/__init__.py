"""The public description of a table, and the map from its rows to scaled values in [−1, 1].

Both sides of the wall use it: the curator to read private rows, the analyst to name features and
to apply a model to rows of their own. Nothing here opens a table.
"""

from dplinear.schema.features import Feature
from dplinear.schema.schema import Schema, SchemaLike
from dplinear.schema.terms import INTERCEPT

__all__ = ["INTERCEPT", "Feature", "Schema", "SchemaLike"]
