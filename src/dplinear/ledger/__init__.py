"""Privacy budgets: what is spent on a dataset, written before a row is read.

`open_ledger` opens a budget that outlives the process; `Request` is one spend in public terms,
`Ledger` the hook that may refuse it; `tally` is a context in which this thread's spends are
counted.
"""

from dplinear.ledger.budget import Budget
from dplinear.ledger.opening import AnyLedger, open_ledger
from dplinear.ledger.request import (
    DamagedLedgerError,
    Keeper,
    Ledger,
    LedgerError,
    NotKeptWarning,
    Request,
)
from dplinear.ledger.tally import Tally, tally
from dplinear.privacy.compose import BudgetExceededError

__all__ = [
    "AnyLedger",
    "Budget",
    "BudgetExceededError",
    "DamagedLedgerError",
    "Keeper",
    "Ledger",
    "LedgerError",
    "NotKeptWarning",
    "Request",
    "Tally",
    "open_ledger",
    "tally",
]
