"""A new user's ten minutes, as docs/command-line.md has them: from Parquet to a page.

In one interpreter of its own, which is all that a shell would start again for each line.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

import dplinear as dpl
from dplinear.demo import visits

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
DRIVER = """
import json, shlex, sys
from dplinear.__main__ import main
for line in sys.stdin:
    words = shlex.split(line, comments=True)
    assert words[0] == "dplinear"
    code = main(words[1:])
    sys.stdout.flush()
    print("\\x00" + json.dumps([line, int(code)]) + "\\x00", flush=True)
"""


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.heavy
def test_ten_minutes(tmp_path: Path) -> None:
    parquet.write_table(visits(5_000), tmp_path / "visits.parquet")
    (tmp_path / "release.toml").write_text(block("toml"), encoding="utf-8")
    lines = block("sh")
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=lines,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    told = done.stdout.split("\x00")
    outputs, codes = told[:-1:2], [json.loads(each)[1] for each in told[1::2]]
    assert len(codes) == len(lines.splitlines()) == 7
    assert codes == [0, 0, 0, 0, 0, 0, 3]
    plan, budget, dry, released, fit, report, refused = outputs
    assert "whitened_descent" in plan
    assert "ρ = 0.05" in budget
    assert "left after  ρ = 0.0219855" in dry
    assert "ρ = 0.0219855 left" in " ".join(released.split())
    assert "Linear model of charges" in fit
    assert "visits.moments.html" in report
    assert not refused.strip()
    assert done.stderr.startswith("Error: The release costs ρ = 0.0280145")
    assert "Traceback" not in done.stderr
    page = (tmp_path / "visits.moments.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Regression of charges" in page
    assert not (tmp_path / "again.json").exists()
    ledger = dpl.open_ledger(tmp_path / "budget.db")
    assert ledger.verify() == 4  # its name, the budget, one spend, one release
    kept = dpl.load(tmp_path / "visits.moments.json", kind="moments").regress(
        "charges", ["age", "bmi", "smoker"]
    )
    assert str(kept.summary()) in fit
