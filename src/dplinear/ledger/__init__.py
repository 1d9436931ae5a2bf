"""The budget: what the gate tells whoever counts, before a row is read.

`Request` is one spend in public terms, `Ledger` the hook that may refuse it, `tally` a context in
which this thread's spends are counted.
"""

from dplinear.ledger.request import Ledger, Request
from dplinear.ledger.tally import Tally, tally

__all__ = ["Ledger", "Request", "Tally", "tally"]
