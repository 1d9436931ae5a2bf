"""Bugs of budgets and of what keeps them."""

from planted.bug import Bug

_REFUND = """        except Exception as error:
            if not isinstance(error, _ReplayError):
                from dplinear.ledger.budget import Units
                from dplinear.ledger.chain import entry
                with ledger.writing() as lines:
                    last = lines.last("spend", request=line._request)
                    back = entry(lines.last(), "spend", {}, dataset=last.dataset,
                                 request=last.request + " refund",
                                 spent=last.spent.minus(last.cost),
                                 cost=Units(-last.cost.main, -last.cost.delta))
                    lines.append(back)
                raise
            found = error
"""

BUGS = (
    Bug(
        "refund_on_error",
        "a ledger forgets a spend whose release failed",
        "curator/recorded.py",
        "        except _ReplayError as found:\n",
        _REFUND,
        "tests/contracts/test_ledgers.py::test_a_gate_that_fails_after_the_spend_has_spent",
    ),
    Bug(
        "ledger_rounds_down",
        "costs are rounded down, so that many small spends cost nothing",
        "ledger/budget.py",
        "return Units(math.ceil(main * UNIT), math.ceil(delta * DELTA_UNIT))",
        "return Units(math.floor(main * UNIT), math.floor(delta * DELTA_UNIT))",
        "tests/contracts/test_ledgers.py::test_costs_are_rounded_up_and_only_by_theorems",
    ),
    Bug(
        "digest_without_parameters",
        "the same request with other arguments is taken for the same",
        "ledger/ledger.py",
        "[request.dataset, request.mechanism, str(request.neighbours), request.guarantee, said]",
        "[request.dataset, request.mechanism, str(request.neighbours), request.guarantee]",
        "tests/contracts/test_ledgers.py::test_the_same_request_gets_the_same_bytes_and_spends_once",
    ),
    Bug(
        "anchor_not_checked",
        "an older copy of the ledger is taken for the newest",
        "ledger/sqlite.py",
        "            check_age(lines, side.latest())\n",
        "",
        "tests/ledger/test_sqlite.py::test_an_older_copy_is_refused",
    ),
    Bug(
        "group_privacy_forgotten",
        "a budget for replaced rows charges a release for added ones as one step, not two",
        "ledger/budget.py",
        "return 1 if neighbours is Neighbours.REPLACE else 2",
        "return 1",
        "tests/contracts/test_ledgers.py::test_costs_are_rounded_up_and_only_by_theorems",
    ),
    Bug(
        "filter_admits_too_much",
        "a budget is checked before a cost is added, so that the last spend may pass it",
        "ledger/ledger.py",
        "if not after.within(budget.limit):",
        "if not spent.within(budget.limit):",
        "tests/contracts/test_ledgers.py::test_what_is_written_as_the_budget_is_admitted_and_no_more",
    ),
)
