"""scikit-learn faces: `fit` crosses the wall once, through the gate; all the rest is free.

Regressors: `PrivateLinearRegression`, `PrivateRidge`, `PrivateLasso` (`regression.py`).
Classifier: `PrivateLogisticRegression` (`classification.py`).
For many features, sparse or not: `PrivateConstrainedRegressor`, `PrivateConstrainedClassifier`
(`constrained.py`), `PrivateSVM` (`svm.py`).
Moments of columns with any bounds: `PrivateMean`, `PrivateCovariance` (`coinpress.py`).
Transformers: `PrivatePCA` (`pca.py`); `PrivateProjection` (`projection.py`), which releases rows.
What they share is in `base.py`; `bounds.py` reads the public bounds, `bounded.py` has models of
bounded columns in a set; `tables.py` turns X and y into
one table without ever quoting what is in it.
"""

from dplinear.estimators.classification import PrivateLogisticRegression
from dplinear.estimators.coinpress import PrivateCovariance, PrivateMean
from dplinear.estimators.constrained import (
    PrivateConstrainedClassifier,
    PrivateConstrainedRegressor,
)
from dplinear.estimators.pca import PrivatePCA
from dplinear.estimators.projection import PrivateProjection
from dplinear.estimators.regression import PrivateLasso, PrivateLinearRegression, PrivateRidge
from dplinear.estimators.svm import PrivateSVM

__all__ = [
    "PrivateConstrainedClassifier",
    "PrivateConstrainedRegressor",
    "PrivateCovariance",
    "PrivateLasso",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateMean",
    "PrivatePCA",
    "PrivateProjection",
    "PrivateRidge",
    "PrivateSVM",
]
