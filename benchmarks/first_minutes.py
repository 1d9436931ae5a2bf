"""How long a newcomer waits: README's commands on a fresh clone, each in a new environment.

    python benchmarks/first_minutes.py [--skip-make]

Three ways: what README and docs/index.md say under "Install", in a clone; the same from a wheel;
and `make demo`. Prints the seconds of each command, by the clock and of the processor, which is
less on a busy machine. Downloads count, as far as pip has not cached them. Exits with 1 if a
command fails, if README and docs/index.md differ, or if the demo takes 5 s of the processor.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
DEMO, LIMIT = "dplinear demo", 5.0  # seconds of the processor


def commands(page: str) -> list[str]:
    """Return the commands in the first block of a page that installs, without their comments."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if "pip install" in block:
            return [line.partition("#")[0].strip() for line in block.splitlines()]
    raise LookupError(page)


def seconds(command: str, folder: Path, home: Path | None = None) -> float:
    """Run a command in a folder, with the programs of an environment; return its CPU seconds."""
    path = os.environ["PATH"] if home is None else f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(  # noqa: S602 - README's own words, as a shell reads them
        command,
        shell=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = sum(after[:2]) - sum(before[:2])
    told = re.sub(rf"(?:{ROOT.parent}|{folder})/", "", command)
    print(f"  {told:<32} {time.perf_counter() - start:6.1f} s, {used:6.1f} s of CPU", flush=True)
    return used


def environment(folder: Path) -> Path:
    """Make an environment that has pip and nothing else."""
    venv.create(folder, with_pip=True)
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Time all ways to the demo; return 1 if it takes longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--skip-make", action="store_true", help="leave out make demo")
    given = parser.parse_args(arguments)
    said = commands("README.md")
    if commands("docs/index.md") != said:
        print("README.md and docs/index.md install in different ways.")
        return 1
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        clone, dist = folder / "clone", folder / "dist"
        print("In a clone:")
        seconds(f"git clone --quiet {ROOT} {clone}", folder)
        home = environment(folder / "from-clone")
        times = {command: seconds(command, clone, home) for command in said}

        print("From a wheel:")
        home = environment(folder / "from-wheel")
        seconds(f"pip wheel --quiet --no-deps --wheel-dir {dist} {clone}", folder, home)
        (wheel,) = dist.glob("*.whl")
        seconds(f"pip install --quiet {wheel}", folder, home)
        demo = max(times[DEMO], seconds(DEMO, folder, home))

        if not given.skip_make:
            print("With make, in a clone:")
            seconds("make demo", clone)
    return int(demo > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
