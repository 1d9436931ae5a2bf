"""What the house promises of itself: pins, dependencies, imports."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from dplinear.version import __version__

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def lower_bounds(requirements: list[str]) -> dict[str, str]:
    pairs = (re.fullmatch(r"([\w.-]+)>=([\w.]+)", line) for line in requirements)
    return {pair[1]: pair[2] for pair in pairs if pair}


def test_lowest_versions_are_those_of_the_project() -> None:
    allowed = lower_bounds(PROJECT["project"]["dependencies"])
    assert len(allowed) == len(PROJECT["project"]["dependencies"])
    lines = (ROOT / "requirements/lowest.in").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    assert pinned == allowed


def test_the_demo_needs_a_part_of_what_developers_have() -> None:
    pins = [_pins(ROOT / "requirements" / name) for name in ("run.txt", "dev.txt")]
    assert pins[0].items() <= pins[1].items()
    assert lower_bounds(PROJECT["project"]["dependencies"]).keys() <= pins[0].keys()


def _pins(file: Path) -> dict[str, str]:
    pairs = (re.match(r"([\w.-]+)==(\S+)", line) for line in file.read_text().splitlines())
    return {pair[1]: pair[2] for pair in pairs if pair}


# The first versions without a hole that is known of them or of what their wheels bring along.
SAFE = {
    "cryptography": "50.0.0",  # CVE-2026-69247; before: CVE-2026-39892, OpenSSL in wheels
    "jinja2": "3.1.6",  # CVE-2025-27516
    "pyarrow": "23.0.1",  # CVE-2026-25087
    "scikit-learn": "1.5.0",  # CVE-2024-5206
    "scipy": "1.10.0",  # CVE-2023-25399
    "numpy": "1.22.0",  # CVE-2021-34141
    "dask": "2026.1.1",  # with distributed
    "distributed": "2026.1.1",  # CVE-2026-23528
    "pyspark": "4.0.1",  # CVE-2025-54920
    "psycopg[binary]": "3.3.0",  # CVE-2025-12818, in the libpq of wheels
}


def test_no_version_with_known_holes_is_allowed() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    lines = [*PROJECT["project"]["dependencies"], *(line for extra in extras for line in extra)]
    found = {name: bound for name, _, bound in (line.partition(">=") for line in lines)}
    for name, safe in SAFE.items():
        assert _version(found[name]) >= _version(safe), name


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def test_a_certificate_tells_versions_with_known_faults_from_this_one() -> None:
    assert PROJECT["project"]["version"] == __version__
    page = (ROOT / "docs" / "advisories.md").read_text(encoding="utf-8")
    headings = " ".join(line for line in page.splitlines() if line.startswith("## "))
    assert "0.1.0.dev1" in headings
    assert __version__ not in headings, "a fault of this version is mended in the next one"
    assert f"mended in `{__version__}`" in page


def test_requirements_are_pinned_by_hash_and_name_no_index() -> None:
    for name in ("dev.txt", "lowest.txt"):
        text = (ROOT / "requirements" / name).read_text()
        entries = re.findall(r"^[\w.-]+==\S+ \\$", text, re.MULTILINE)
        assert len(entries) > 8
        assert text.count("--hash=sha256:") >= len(entries)
        assert not re.search(r"index-url|find-links|trusted-host|https?://", text)


def test_importing_the_library_loads_no_extra() -> None:
    heavy = ("dp_accounting", "sklearn", "pandas", "polars", "dask", "pyspark", "opendp", "mpmath")
    code = (
        "import sys, dplinear, dplinear.privacy, dplinear.noise.discrete;"
        "import dplinear.analyst.releases.files;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_random_generators_are_banned_outside_the_noise_room() -> None:
    banned = PROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert set(banned) == {"numpy.random", "random", "secrets"}
    for path in (ROOT / "src").rglob("*.py"):
        if "noise" not in path.parts:
            assert not re.search(
                r"np\.random|numpy\.random|import (random|secrets)", path.read_text()
            )
