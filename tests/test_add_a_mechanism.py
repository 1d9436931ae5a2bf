"""The worked page "add your own mechanism": its code, installed as a package, in every face.

Each check runs in a process of its own, so that no other test meets the mechanism. Audits draw
seeded noise: they cannot raise a false alarm from one run to the next.
"""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import dplinear as dpl
from dplinear.mechanisms.contract import MomentsMechanism
from dplinear.registry import MOMENTS, register

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/how-to/add-a-mechanism.md"
NAME = "symmetric_laplace"
Run = Callable[..., str]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the page's code: a module, and the entry point that the page gives."""
    folder = tmp_path_factory.mktemp("installed")
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r'```python title="symmetric_laplace.py"\n(.*?)```', text, re.DOTALL)
    (entry,) = re.findall(r"```toml\n\[project.entry-points.(.*?)\]\n(.*?)```", text, re.DOTALL)
    (folder / f"{NAME}.py").write_text(code, encoding="utf-8")
    about = folder / f"{NAME}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n")
    lines = f"[{entry[0].strip(chr(34))}]\n{entry[1].replace(chr(34), '')}"
    (about / "entry_points.txt").write_text(lines)
    return folder


@pytest.fixture
def run(package: Path, tmp_path: Path) -> Run:
    """Run Python where the package is installed; return what it prints."""

    def _run(*arguments: str, code: int = 0) -> str:
        paths = os.pathsep.join([str(package), str(ROOT / "src"), str(ROOT / "docs")])
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": paths, "COLUMNS": "100", "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return _run


RELEASE = """
import numpy as np, dplinear as dpl
rows = np.random.default_rng(1).uniform(-1, 1, (20_000, 3))
rows[:, 2] = (rows[:, 0] - rows[:, 1]) / 2
schema = dpl.Schema(a=(-1, 1), b=(-1, 1), y=(-1, 1))
for neighbours in ("add_remove", "replace"):
    made = dpl.release_moments(
        rows, schema, epsilon=1.0, mechanism="symmetric_laplace", neighbours=neighbours)
    slopes = np.array(made.regress("y").coefficients.values)
    assert np.abs(slopes - [0.5, -0.5]).max() < 0.05, slopes  # noise is below 0.002
    assert made.certificate.holds == dpl.PureDP(1.0)
    assert any("symmetric_laplace.SymmetricLaplace" in note for note in made.certificate.notes)
made.save("made.json")
fit = dpl.PrivateLinearRegression(
    epsilon=1.0, delta=None, bounds=(-1, 1), target_bounds=(-1, 1), mechanism="symmetric_laplace")
assert np.abs(fit.fit(rows[:, :2], rows[:, 2]).coef_ - [0.5, -0.5]).max() < 0.05
"""


def test_a_release_is_made_saved_and_loaded_elsewhere(run: Run) -> None:
    run("-c", RELEASE)
    loaded = "import dplinear as dpl; print(dpl.load('made.json').regress('y').summary())"
    assert "0.5" in run("-c", loaded)


def test_its_noise_hides_the_row_that_moves_most(run: Run) -> None:
    run(
        "-c",
        """
import numpy as np, dplinear as dpl
from symmetric_laplace import SymmetricLaplace
from dplinear.exact.grid import plain_shape
for d in (1, 2, 7):
    shape = plain_shape(d)
    made = SymmetricLaplace(guarantee=dpl.PureDP(0.5)).prepare(shape)
    row = [min(shape.steps_per_unit, 1 << shape.exponent)] * d  # at all bounds
    moved = sum(row[i] * row[j] for i in range(d) for j in range(i, d))
    assert 0.999 * made.scale * 0.5 < moved <= made.scale / 2, (d, moved)
    replaced = SymmetricLaplace(guarantee=dpl.PureDP(0.5), neighbours="replace").prepare(shape)
    assert replaced.scale == 2 * made.scale
""",
    )


def test_the_planner_knows_it(run: Run) -> None:
    printed = run(
        "-c",
        """
import math, dplinear as dpl
for learn in ("moments", "mean", "covariance", "pca", "regression"):
    plan = dpl.plan(100_000, 3, epsilon=1.0, learn=learn)
    line = plan["symmetric_laplace"]
    assert math.isfinite(line.error) and 'mechanism="symmetric_laplace"' in line.call, line
    print(learn, line.error)
""",
    )
    errors = {word: float(number) for word, number in map(str.split, printed.splitlines())}
    # Of a correlation: d = 4, so the scale is (4 + 1)/2·4; cells are a quarter wide.
    scale = (4 + 1) / 2 * 4
    noise = 2**0.5 * scale * 16 / 1e5
    assert errors["moments"] == pytest.approx((noise**2 + 1e-5) ** 0.5, rel=1e-3)
    assert 0 < errors["regression"] < 0.1


def test_the_audit_proves_most_of_the_claim_and_finds_a_half_measure(run: Run) -> None:
    printed = run(
        "-c",
        """
import dataclasses, dplinear as dpl, symmetric_laplace as page
from dplinear.audit.catalogue import audit
from dplinear.noise import simulation
for neighbours in ("add_remove", "replace"):
    found = audit("symmetric_laplace", dpl.PureDP(1.0), neighbours, entropy=simulation.entropy(1))
    print(found.broken, found.audited)
usual = page.SymmetricLaplace.prepare
def halved(self, shape):
    ready = usual(self, shape)
    return dataclasses.replace(ready, scale=ready.scale / 2)
page.SymmetricLaplace.prepare = halved
found = audit("symmetric_laplace", dpl.PureDP(1.0), entropy=simulation.entropy(1))
print(found.broken, found.audited)
""",
    )
    added, replaced, halved = (line.split() for line in printed.splitlines())
    assert added[0] == replaced[0] == "False"
    assert 0.8 < float(added[1]) <= 1
    assert halved[0] == "True"


def test_the_command_line_knows_it(run: Run, tmp_path: Path) -> None:
    with (tmp_path / "visits.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["age", "y"], *([place % 100, place % 2] for place in range(500))]
        )
    (facts,) = json.loads(run("-m", "dplinear", "mechanisms", NAME, "--json"))
    assert (facts["releases"], facts["numerics"], facts["package"]) == ("moments", "exact", NAME)
    assert f"{NAME} ({NAME})" in run("-m", "dplinear", "mechanisms")
    columns = ["--column", "age 0 100", "--column", "y 0 1"]
    asked = ["--epsilon", "1", "--mechanism", NAME, "--output", "out.json"]
    run("-m", "dplinear", "release", "moments", "visits.csv", *columns, *asked)
    run("-m", "dplinear", "regress", "out.json", "--target", "y")
    size = ["--expected-rows", "100000", "--columns", "3", "--epsilon", "1", "--learn", "moments"]
    assert NAME in run("-m", "dplinear", "plan", *size)
    assert NAME in run("-m", "dplinear", "audit", NAME, "--trials", "2000", "--seed", "1")


def test_the_reference_knows_it(run: Run) -> None:
    table = run("-c", "import hooks; print(hooks.reference())")
    assert f"`{NAME} ({NAME})` | moments | exact" in table
    pytest.importorskip("mkdocs")  # which pages of mechanisms are made for
    made = "import mechanism_pages as made; uses = made._entries()[{0!r}]"
    page = run("-c", f"{made}; print(made.page(made.find({{0!r}}), uses))".format(NAME))
    assert f"::: {NAME}.SymmetricLaplace" in page


MODEL = """
import dplinear as dpl
from dataclasses import dataclass
from typing import ClassVar
from dplinear.mechanisms.adassp import AdaSSP
from dplinear.audit.catalogue import audit, entries
from dplinear.noise import simulation
@dpl.register
@dataclass(frozen=True, kw_only=True)
class Mine(AdaSSP):
    name: ClassVar[str] = "mine"
seen = dpl.forecast(10_000, 3, epsilon=1.0, delta=1e-6, mechanisms=["mine"], tables=3)
assert seen["mine"].excess < 0.5
plan = dpl.plan(10_000, 3, epsilon=1.0, delta=1e-6)
refused = dict(plan.refused)
assert "forecast" in refused["mine"].hint, refused
assert not audit("mine", dpl.ApproxDP(1.0, 0.05), entropy=simulation.entropy(1), trials=1000).broken
choice = __import__("dplinear.planner.auto", fromlist=["x"])
import numpy as np
made = dpl.release_model(
    np.zeros((9, 2)), dpl.Schema(x=(-1, 1), y=(-1, 1)), "y", epsilon=1.0, delta=1e-6,
    mechanism="mine")
assert made.certificate.mechanism == "mine"
"""


def test_a_mechanism_for_models_is_known_too(run: Run) -> None:
    run("-c", MODEL)


def test_a_package_that_fails_is_named_and_left_out(run: Run, tmp_path: Path) -> None:
    about = tmp_path / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dplinear.mechanisms]\nodd = nowhere:Odd\n")
    printed = run(
        "-c",
        """
import sys, warnings; sys.path.insert(0, ".")
from dplinear.registry import MOMENTS
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print(list(MOMENTS), [str(one.message) for one in told])
""",
    )
    assert "nowhere:Odd" in printed
    assert NAME in printed


class _Plain(MomentsMechanism):
    name: ClassVar[str] = "plain"
    numerics: ClassVar[str] = "exact"

    def prepare(self, shape: Any) -> Any:
        """Do nothing."""


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [
        (object, "kind"),
        (MomentsMechanism, "kind"),
        (3, "kind"),
        (type("Loose", (_Plain,), {"name": "no name"}), "name"),
        (type("Loose", (_Plain,), {"name": "analyze_gauss"}), "name"),
        (type("Loose", (_Plain,), {"name": "auto"}), "name"),
        (type("Loose", (_Plain,), {"numerics": "fine"}), "numerics"),
    ],
)
def test_what_is_no_mechanism_is_not_registered(kind: Any, parameter: str) -> None:
    with pytest.raises((dpl.ArgumentError, TypeError)) as caught:
        register(kind)
    assert getattr(caught.value, "parameter", None) == parameter
    assert set(MOMENTS.own) == {"analyze_gauss", "additive_wishart", "sketch", "inverse_wishart"}
