"""`python -m tests.locality`: so many pairs of each source, and a table of what came of them.

Run it from the root of the repository with PYTHONPATH=src:tests.
"""

import argparse
import sys

from .runs import HEADER, counted, one
from .sources import sources as all_sources


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.locality", description=__doc__)
    parser.add_argument("--source", action="append", choices=all_sources(), help="default: all")
    parser.add_argument("--pairs", type=int, default=200, help="of each source")
    parser.add_argument("--run", type=int, default=0, help="which pairs: a number for each set")
    parser.add_argument("--seed", type=int, help="one base table, as a run printed it")
    parser.add_argument("--pair", type=int, default=0, help="which neighbour of it")
    given = parser.parse_args()
    sources = [all_sources()[name] for name in given.source or all_sources()]
    if given.seed is not None:
        print(one(sources[0], given.seed, given.pair))  # noqa: T201 - for people
        return
    print(HEADER, flush=True)  # noqa: T201 - a table for people
    wrong = 0
    for source in sources:
        counts = counted(source, max(1, round(given.pairs * source.share)), given.run)
        wrong += counts.wrong
        print(counts, flush=True)  # noqa: T201 - likewise
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
