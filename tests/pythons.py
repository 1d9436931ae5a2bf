"""The interpreters on this machine that the project says it runs on."""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent


def declared() -> list[str]:
    """Return the versions that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = (re.fullmatch(r".* :: (3\.\d+)", line) for line in project["classifiers"])
    return [match[1] for match in found if match]


def interpreter(version: str) -> str | None:
    """Return a Python of this version that really starts, or None."""
    return next((path for path in _candidates(version) if _starts(path, version)), None)


def _candidates(version: str) -> Iterator[str]:
    if (found := shutil.which(f"python{version}")) is not None:
        yield found
    managed = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    yield from map(str, sorted(managed.glob(f"{version}.*/bin/python"), reverse=True))


def _starts(path: str, version: str) -> bool:
    asked = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    ran = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    return ran.returncode == 0 and ran.stdout.strip() == version


if __name__ == "__main__":  # for the Makefile
    for version in declared():
        if (path := interpreter(version)) is not None:
            print(f"{version}={path}")  # noqa: T201
