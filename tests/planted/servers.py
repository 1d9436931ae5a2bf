"""Bugs of ledgers on a server."""

from planted.bug import Bug

_TRIGGER = "tests/ledger/test_postgres_trigger.py"
_COMMIT = "tests/ledger/test_postgres_commit.py"
_SAVED = "tests/ledger/test_postgres_saved.py"

BUGS: tuple[Bug, ...] = (
    Bug(
        "hash_taken_on_trust",
        "a server takes a line with whatever hash it has, and nobody can open the ledger again",
        "ledger/postgres/trigger.py",
        "f\"NEW.hash = encode(sha256(convert_to({canonical}, 'UTF8')), 'hex')\"",
        'f"NEW.hash IS NOT NULL AND {canonical} IS NOT NULL"',
        f"{_TRIGGER}::test_a_line_with_a_false_hash_does_not_brick_the_ledger",
    ),
    Bug(
        "releases_of_others",
        "whoever may spend may say what a colleague's request has found",
        "ledger/postgres/trigger.py",
        "\"session_user = paid.role OR (owns AND paid.role = '')\"",
        '"true"',
        f"{_TRIGGER}::test_nobody_keeps_a_release_under_what_another_role_has_spent",
    ),
    Bug(
        "budgets_by_anybody",
        "whoever may spend may give the table a second name, with a budget of its own",
        "ledger/postgres/trigger.py",
        '            ("owns", "only its owner declares budgets"),\n',
        "",
        f"{_TRIGGER}::test_only_the_owner_declares_budgets",
    ),
    Bug(
        "half_ranges_forgotten_on_a_server",
        "a spend may say that earlier ones had no half-ranges, and later changes are larger",
        "ledger/postgres/trigger.py",
        "own || ranges)",
        "told->'so_far'->'half_ranges')",
        f"{_TRIGGER}::test_half_ranges_of_earlier_spends_are_not_forgotten",
    ),
    Bug(
        "acknowledgement_burnt",
        "a spend whose acknowledgement was lost counts as failed, and can never be released",
        "ledger/postgres/ledger.py",
        "        if stands:\n            return\n",
        "        if stands:\n            break\n",
        f"{_COMMIT}::test_a_spend_whose_acknowledgement_is_lost_stands",
    ),
    Bug(
        "looked_up_without_the_lock",
        "a commit on which the server still works is said not to have happened",
        "ledger/postgres/ledger.py",
        "        line.lock(table)\n        found = PostgresLines(",
        "        found = PostgresLines(",
        f"{_COMMIT}::test_while_the_server_still_works_on_the_commit_nothing_is_said",
    ),
    Bug(
        "readers_lock",
        "who reads a ledger on a server makes those who spend wait",
        "ledger/postgres/ledger.py",
        '            line.ask("ROLLBACK")\n            line.begin("REPEATABLE READ, READ ONLY")\n',
        "            line.lock(line.table(address.ledger) or 0)\n",
        "tests/ledger/test_postgres.py::test_a_reader_delays_no_writer_and_sees_one_moment",
    ),
    Bug(
        "password_saved_with_the_ledger",
        "a pickled model holds the password of the ledger that it was given opened",
        "ledger/address.py",
        'return vars(self) | {"url": _bare(self.url)}',
        "return vars(self)",
        f"{_SAVED}::test_an_opened_ledger_is_saved_without_its_password",
    ),
    Bug(
        "password_saved_with_the_url",
        "a pickled model holds the password in the URL that it was given",
        "ledger/address.py",
        "return _bare(text) if has_password else text",
        "return text",
        f"{_SAVED}::test_an_estimator_is_saved_without_a_password",
    ),
)
