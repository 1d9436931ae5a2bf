"""The outputs on our pages: `python -m tests.pages [--write] [PAGE …]`, by default all of them.

A page is a Markdown file or a notebook.

Without --write: print how the outputs that pages show differ from the real ones.
With --write: put the real ones there. A fold (a line `…`) stays where it was.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from . import notebooks, writing
from .blocks import BY_ITSELF, ROOT, WITH_SERVICES, pages
from .runner import furnish, run


def main() -> int:
    """Check or write pages; return 1 if any differs and was not written."""
    parser = argparse.ArgumentParser(
        prog="pages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("pages", nargs="*", metavar="PAGE", type=Path)
    given = parser.parse_args()
    failed = False
    every = [
        *map(ROOT.joinpath, sorted({*pages()} - {*BY_ITSELF} - WITH_SERVICES)),
        *notebooks.notebooks(),
    ]
    for path in [path.resolve() for path in given.pages] or every:
        page = str(path.relative_to(ROOT))
        with TemporaryDirectory() as temporary:
            folder = Path(temporary).resolve() / "run"
            if given.write:
                said = "written" if _write(path, page, folder) else "as it was"
            else:
                said = _differences(path, page, folder)
                failed = failed or bool(said)
        print(f"{page}: {said or 'as it should be'}")  # noqa: T201 - a command prints
    return int(failed)


def _differences(path: Path, page: str, folder: Path) -> str:
    folder.mkdir()
    if path.suffix == ".ipynb":
        return notebooks.differences(path, folder)
    furnish(folder)
    return writing.differences(page, run(page, folder))


def _write(path: Path, page: str, folder: Path) -> bool:
    folder.mkdir()
    if path.suffix == ".ipynb":
        return notebooks.write(path, folder)
    furnish(folder)
    return writing.write(page, folder)


if __name__ == "__main__":
    sys.exit(main())
