"""Bugs of budgets and of what keeps them."""

from planted.bug import Bug

_REFUND = """        except BaseException as error:
            if hasattr(self._ledger, "writing"):
                from dplinear.ledger.budget import Units
                from dplinear.ledger.hash_chain import entry
                with self._ledger.writing() as lines:
                    last = lines.last("spend", request=self.request)
                    back = entry(lines.last(), "spend", {}, dataset=last.dataset,
                                 request=last.request + " refund",
                                 spent=last.spent.minus(last.cost),
                                 cost=Units(-last.cost.main, -last.cost.delta))
                    lines.append(back)
            if self._ledger is not None:
"""

BUGS = (
    Bug(
        "refund_on_error",
        "a ledger forgets a spend whose release failed",
        "curator/passage.py",
        "        except BaseException as error:\n            if self._ledger is not None:\n",
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
        "return fingerprint([*asked, request.arguments or request.parameters])",
        "return fingerprint(asked)",
        "tests/contracts/test_ledgers.py::test_the_same_request_gets_the_same_bytes_and_spends_once",
    ),
    Bug(
        "anchor_not_checked",
        "an older copy of the ledger is taken for the newest",
        "ledger/sqlite/ledger.py",
        "    check_age(lines, known)\n",
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
        "privacy/compose.py",
        "all(0 <= each <= left for each, left in zip(cost, self.remaining, strict=True))",
        "all(left >= 0 for left in self.remaining)",
        "tests/contracts/test_ledgers.py::test_what_is_written_as_the_budget_is_admitted_and_no_more",
    ),
    Bug(
        "fork_keeps_lock",
        "a child holds the lock of a spend that was waiting when it was forked",
        "ledger/sqlite/forks.py",
        "        with suppress(OSError):\n            os.close(handle)\n",
        "        with suppress(OSError):\n            os.fstat(handle)\n",
        "tests/ledger/test_forks.py::test_a_child_closes_what_a_thread_is_waiting_with",
    ),
    Bug(
        "fork_waits_for_nobody",
        "a fork does not wait for a spend, whose database the child then believes to be locked",
        "ledger/sqlite/forks.py",
        "    _USES.changed.wait_for(lambda: _USES.others() == 0, _PATIENCE)\n",
        "",
        "tests/ledger/test_forks.py::test_a_fork_waits_for_uses_and_holds_back_new_ones",
    ),
    Bug(
        "reader_holds_lock",
        "whoever reads a ledger waits for those who write, and they for it",
        "ledger/sqlite/ledger.py",
        "            known = anchor.read_mark(side)  # first: the lines are at least as new\n",
        "            with anchor.hold_lock(side, self.timeout) as held:\n"
        "                known = held.latest()\n",
        "tests/ledger/test_sqlite.py::test_a_locked_ledger_is_refused_after_a_while",
    ),
    Bug(
        "trigger_misses_index",
        "every line that is added looks through all lines for its request",
        "ledger/sqlite/tables.py",
        " OR EXISTS (SELECT 1 FROM lines WHERE request = NEW.request{NAMED} AND kind = NEW.kind)\n",
        " OR EXISTS (SELECT 1 FROM lines WHERE request = NEW.request AND kind = NEW.kind)\n",
        "tests/ledger/test_sqlite.py::test_nothing_is_looked_through_for_a_spend",
    ),
    Bug(
        "state_not_checked",
        "a budget that was changed in the .db alone is taken for the one that was declared",
        "ledger/verification.py",
        "    if lines.as_of(sequence - 1).state() != said:\n",
        "    if lines.as_of(sequence - 1).state() is None:\n",
        "tests/ledger/test_forged.py::"
        "test_lines_that_were_rewritten_with_hashes_that_fit_are_refused",
    ),
    Bug(
        "forged_lines_count",
        "lines that were forced into the .db after the last that the side file knows of all count",
        "ledger/verification.py",
        "        _check_rules(later, limit, NOTHING if spend is None else spend.spent)\n    return",
        "    return",
        "tests/ledger/test_forged.py::test_lines_that_were_forced_in_are_refused",
    ),
    Bug(
        "negative_costs",
        "a line in the .db may give back what was spent",
        "ledger/sqlite/tables.py",
        "OR NEW.{name} < 0",
        "OR NEW.{name} < -1e18",
        "tests/ledger/test_forged.py::test_lines_that_break_the_rules_are_not_let_in",
    ),
    Bug(
        "hard_links",
        "a ledger with two names is used, and what a killed process left under one is not found",
        "ledger/sqlite/ledger.py",
        "    if path.stat().st_nlink > 1:\n",
        "    if path.stat().st_nlink > 9:\n",
        "tests/ledger/test_forged.py::test_a_ledger_with_two_names_is_refused",
    ),
    Bug(
        "types_not_checked",
        "a request of another type is written, and the ledger cannot be read again",
        "ledger/ledger.py",
        '        request = check_request(request, "spend")\n',
        "",
        "tests/ledger/test_making.py::test_a_request_of_another_type_leaves_the_ledger_as_it_is",
    ),
    Bug(
        "line_not_read_back",
        "a line is written that does not read as it was meant",
        "ledger/ledger.py",
        "    if not same or lines.at(line.sequence) != line:\n",
        "    if not same:\n",
        "tests/ledger/test_lines.py::test_a_line_that_reads_otherwise_is_not_written",
    ),
    Bug(
        "made_in_place",
        "a ledger whose making was cut short can neither be opened nor made",
        "ledger/sqlite/ledger.py",
        "    if not side.is_unused() or (os.path.lexists(file)",
        "    if side.marks() != [None, None] or (os.path.lexists(file)",
        "tests/ledger/test_making.py::"
        "test_whatever_fails_while_a_ledger_is_made_it_can_be_made_again",
    ),
    Bug(
        "anchor_before_commit",
        "the side file knows of a line before it lasts, and refuses the ledger after a crash",
        "ledger/sqlite/ledger.py",
        '                connection.execute("COMMIT")\n                # Only what',
        "                side.move(mark)\n"
        '                connection.execute("COMMIT")\n                # Only what',
        "tests/ledger/test_faults.py::"
        "test_what_was_acknowledged_is_there_whatever_fails_and_the_ledger_is_of_use"
        "[use-before-some]",
    ),
    Bug(
        "seed_not_told",
        "what a seed made is returned to a call that asks for a release",
        "curator/request_fingerprint.py",
        '    return fingerprint([name, public, {"seed": simulation.seed_for_release()}])\n',
        "    return fingerprint([name, public])\n",
        "tests/curator/test_recorded.py::test_what_a_seed_made_is_not_taken_for_a_release",
    ),
    Bug(
        "numbers_as_written",
        "a request that was made with 1 is another one with 1.0",
        "ledger/fingerprint.py",
        "    return hashlib.sha256(_text(_canonical(_describe(value))).encode()).hexdigest()\n",
        "    return hashlib.sha256(_text(plain(value)).encode()).hexdigest()  # as they are\n",
        "tests/ledger/test_paths.py::test_equal_numbers_are_one_argument",
    ),
    Bug(
        "lists_taken_for_objects",
        "a list that looks like what stands for a number is that number: two requests are one",
        "ledger/fingerprint.py",
        "        return [_LIST, *map(_canonical, content)]\n",
        "        return _canonical(tuple(content)) if content else []\n",
        "tests/ledger/test_paths.py::test_what_looks_like_another_argument_is_not_it",
    ),
    Bug(
        "returned_in_silence",
        "dplinear release does not say that it returns what the ledger kept",
        "cli/release/__init__.py",
        "again=asked.ledger is not None and not len(spent)",
        "again=False",
        "tests/cli/test_release.py::test_a_release_that_comes_from_the_ledger_says_so",
    ),
    Bug(
        "anybodys_anchor",
        "everybody on the machine may lock a ledger by its side file",
        "ledger/sqlite/forks.py",
        "flags: int, mode: int = 0o600",
        "flags: int, mode: int = 0o666",
        "tests/ledger/test_making.py::test_files_are_their_owners_alone",
    ),
    Bug(
        "unknown_disks",
        "a ledger is kept on a file system of which nothing is known",
        "ledger/sqlite/mounts.py",
        "    if kind is not None and kind not in _LOCAL:\n",
        '    if kind is not None and kind.startswith(("nfs", "cifs", "smb")):\n',
        "tests/ledger/test_sqlite.py::"
        "test_file_systems_that_are_not_known_to_keep_locks_are_refused",
    ),
    Bug(
        "password_after_a_mark",
        "a password after ? or & in what is no whole URL is shown",
        "arguments.py",
        """(^|[\\s'\\"\\[(?&;,])(ssl)?password""",
        """(^|[\\s'\\"\\[(])(ssl)?password""",
        "tests/ledger/test_paths.py::test_what_is_nearly_a_url_is_not_quoted",
    ),
)
