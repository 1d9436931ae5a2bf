"""`python -m tests.fuzz`: so many inputs for each gate, and a table of what came of them."""

import argparse
import sys
from pathlib import Path

from .gates import GATES, one
from .runs import HEADER, apart, for_parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("gates", nargs="*", metavar="GATE", help=", ".join(GATES))
    parser.add_argument("--inputs", type=int, default=200, help="of each gate")
    parser.add_argument("--run", type=int, default=0, help="which inputs: a number for each set")
    parser.add_argument("--seed", type=int, help="one input, as a run printed it")
    parser.add_argument("--apart", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    gates = given.gates or list(GATES)
    if given.apart is not None:
        for_parent(gates[0], given.inputs, given.run, given.apart)
        return
    if given.seed is not None:
        verdict = one(gates[0], given.seed)
        sys.stdout.write(f"{verdict.problem or 'no problem'}\n{verdict.detail}")
        return
    print(HEADER, flush=True)  # noqa: T201 - a table for people
    wrong = 0
    for gate in gates:
        counts = apart(gate, given.inputs, given.run)
        wrong += counts.wrong
        print(counts, flush=True)  # noqa: T201 - likewise
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
