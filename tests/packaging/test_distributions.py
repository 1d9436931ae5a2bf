"""What is built to be installed elsewhere: a wheel and an sdist that hold what they should."""

import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from pythons import ROOT, declared, interpreter

SMOKE = Path(__file__).with_name("smoke.py")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.heavy
def test_the_wheel_has_every_file_of_the_library_and_nothing_else(built: tuple[Path, Path]) -> None:
    names = zipfile.ZipFile(built[0]).namelist()
    inside = {name for name in names if not name.partition("/")[0].endswith(".dist-info")}
    tracked = subprocess.run(
        ["/usr/bin/env", "git", "ls-files", "src/dplinear"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert inside == {name.removeprefix("src/") for name in tracked.stdout.split("\n") if name}
    with zipfile.ZipFile(built[0]) as wheel:
        (place,) = (name for name in names if name.endswith("entry_points.txt"))
        assert b"dplinear = dplinear.__main__:main" in wheel.read(place)
        (place,) = (name for name in names if name.endswith("METADATA"))
        facts = Parser().parsestr(wheel.read(place).decode())
    assert facts["Name"] == "dplinear"
    assert facts["Requires-Python"] == ">=3.11"


@pytest.mark.heavy
def test_the_sdist_has_what_a_wheel_is_built_from(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/dplinear/__init__.py"} <= names
    assert not any(name.startswith((".venv", ".git/")) for name in names)


@pytest.mark.long
@pytest.mark.parametrize("version", declared())
def test_an_installed_wheel_works_in_a_clean_environment(
    version: str, built: tuple[Path, Path], tmp_path: Path
) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"NOT TESTED: there is no Python {version} on this machine.")
    home = tmp_path / "venv"
    subprocess.run([python, "-m", "venv", str(home)], check=True)
    quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([home / "bin/python", *quiet, str(built[0])], check=True)

    def said(*words: object) -> str:
        done = subprocess.run(
            list(map(str, words)), cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert not done.stderr
        return done.stdout

    assert said(home / "bin/python", "-W", "error", SMOKE) == "fine"
    helped = said(home / "bin/dplinear", "--help")
    assert all(command in helped for command in ("demo", "plan", "ledger", "audit"))
    said(home / "bin/dplinear", "demo")
