"""The outputs on our pages: `python -m tests.pages [--write] [PAGE …]`, by default all of them.

Without --write: print how the outputs that pages show differ from the real ones.
With --write: put the real ones there. A fold (a line `…`) stays where it was.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from .blocks import ROOT, pages
from .runner import furnish, run
from .writing import differences, write


def main() -> int:
    """Check or write pages; return 1 if any differs and was not written."""
    parser = argparse.ArgumentParser(
        prog="pages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("pages", nargs="*", metavar="PAGE", type=Path)
    given = parser.parse_args()
    failed = False
    for page in [str(path.resolve().relative_to(ROOT)) for path in given.pages] or pages():
        with TemporaryDirectory() as temporary:
            folder = Path(temporary).resolve()
            furnish(folder)
            if given.write:
                said = "written" if write(page, folder) else "as it was"
            else:
                said = differences(page, run(page, folder))
                failed = failed or bool(said)
        print(f"{page}: {said or 'as it should be'}")  # noqa: T201 - a command prints
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
