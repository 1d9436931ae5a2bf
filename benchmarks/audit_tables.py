"""Print the tables of docs/audit.md anew, and put them there: more than a quarter of an hour.

What is printed for a mechanism is kept in a folder, so that a run that was stopped goes on where it
was: `python benchmarks/audit_tables.py --folder audits`.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from dplinear.audit import bits, replays
from dplinear.audit.catalogue import ENTRIES
from dplinear.audit.printing import Audits, markdown

PAGE = Path(__file__).resolve().parents[1] / "docs" / "audit.md"
SEED = 1


def audits(folder: Path) -> list[str]:
    """Return the lines of `dplinear audit all --seed 1 --markdown`."""
    lines: list[str] = []
    for name in ENTRIES:
        file = folder / f"{name}.md"
        if not file.exists():
            found = list(Audits(name, seed=SEED).run(lambda _: nullcontext(len)))
            file.write_text("\n".join(markdown(found)) + "\n", encoding="utf-8")
            print(name, flush=True)
        own = file.read_text(encoding="utf-8").splitlines()
        lines += own[2:] if lines else own
    return lines


def placed(page: str, name: str, lines: Sequence[str]) -> str:
    """Return the page with a table between its two marks."""
    before, rest = page.split(f"<!-- {name} -->\n")
    _, after = rest.split(f"<!-- end of {name} -->\n")
    table = "\n".join(lines)
    return f"{before}<!-- {name} -->\n{table}\n<!-- end of {name} -->\n{after}"


def main(given: Sequence[str] | None = None) -> int:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("audits"))
    parser.add_argument("--pairs", type=int, default=8)
    chosen = parser.parse_args(given)
    chosen.folder.mkdir(exist_ok=True)
    page = placed(PAGE.read_text(encoding="utf-8"), "audits", audits(chosen.folder))
    page = placed(page, "bits", list(bits.markdown(list(bits.results(seed=SEED)))))
    found = replays.together(list(replays.replay(None, chosen.pairs, SEED)))
    page = placed(page, "replays", list(replays.markdown(found)))
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
