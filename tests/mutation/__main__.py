"""Mutation testing: `python -m mutation measure`, then `run` (in shards, resumable), then `table`.

measure  run the tests once and note which lines each runs
check    end with a sentence if that was not done since sources or tests have changed
run      try mutants; what is known already, here or in build/mutation, is not tried again
table    write docs/mutation.md, and what it was made of to tests/mutation/outcomes
"""

import argparse
import os
import sys
import time

from mutation import rooms, runner, table


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["measure", "check", "run", "table"])
    parser.add_argument("--room", choices=rooms.ROOMS, default="privacy")
    parser.add_argument("--tests", nargs="*", help="measure these as well, and keep the others")
    parser.add_argument("--select", help="measure only tests of which this holds")
    parser.add_argument("--shard", default="1/1", help="2/4: the second of four parts")
    parser.add_argument("--patience", type=float, default=20, help="seconds of tests a mutant")
    parser.add_argument("--kind", choices=["live", "fresh", "both"], default="both")
    parser.add_argument("--again", action="store_true", help="try survivors once more")
    parser.add_argument("--only", default="", help="keys of mutants, with commas")
    parser.add_argument("--minutes", type=float, default=600, help="stop after so many")
    words = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if words.command == "measure":
        chosen = [
            *(words.tests or rooms.tests(words.room)),
            "-k",
            words.select or rooms.select(words.room),
        ]
        runner.measure(words.room, chosen, more=bool(words.tests))
    elif words.command == "check":
        sys.exit(runner.outdated(words.room) or 0)
    elif words.command == "table":
        table.write()
    else:
        part, parts = map(int, words.shard.split("/"))
        work = runner.Work(
            files=rooms.files(words.room),
            coverage=runner.Coverage.read(words.room),
            shard=(part, parts),
            patience=words.patience,
            again=words.again,
            only=set(filter(None, words.only.split(","))),
            deadline=time.time() + 60 * words.minutes,
        )
        with rooms.service(words.room):
            # Those that are imported anew come first: this process must not know the library yet.
            if words.kind != "live":
                runner.try_fresh(work)
            if words.kind != "fresh":
                runner.try_live(work, rooms.tests(words.room))


if __name__ == "__main__":
    main()
