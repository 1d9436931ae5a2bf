"""scikit-learn faces: `fit` crosses the wall once, through the gate; all the rest is free.

Regressors: `PrivateLinearRegression`, `PrivateRidge`, `PrivateLasso` (`regression.py`).
Classifier: `PrivateLogisticRegression` (`classification.py`).
Transformer: `PrivatePCA` (`pca.py`). What they share is in `base.py`; `bounds.py` reads the public
bounds, `tables.py` turns X and y into one table without ever quoting what is in it.
"""

from dplinear.estimators.classification import PrivateLogisticRegression
from dplinear.estimators.pca import PrivatePCA
from dplinear.estimators.regression import PrivateLasso, PrivateLinearRegression, PrivateRidge

__all__ = [
    "PrivateLasso",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivatePCA",
    "PrivateRidge",
]
