"""Samples a second of exact noise, against OpenDP, and the keystream against raw AES: one core.

Fails if the Laplace sampler is not 20 times, or the Gaussian not 10 times, as fast as OpenDP's.
"""

import os
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import opendp.prelude as dp
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from rich.console import Console
from rich.table import Table

from dplinear.noise import discrete
from dplinear.noise.entropy import system

VECTOR = 10**6
SECONDS = 2.0
LEAST_RATIO = {"Laplace": 20.0, "Gaussian": 10.0}
SCALES = [1.0, 10.0, 1000.0, 2.0**20, 2.0**40]


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the median time of a call, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def rival_rate(measurement: Callable[[list[int]], list[int]]) -> float:
    """Return OpenDP's samples a second, on a vector of about `SECONDS` of work."""
    probe = [0] * 10_000
    size = int(len(probe) * SECONDS / seconds(lambda: measurement(probe), 1))
    data = [0] * min(VECTOR, max(len(probe), size))
    start = time.perf_counter()
    measurement(data)
    return len(data) / (time.perf_counter() - start)


def keystream_rates() -> tuple[float, float]:
    """Return bytes a second of our generator and of AES-256-CTR alone, on the same buffer."""
    words = np.empty(1 << 21, np.uint64)
    target = words.view(np.uint8).data
    zeros = bytes(len(target))
    cipher = Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
    ours = seconds(lambda: system().fill(words), 15)
    return len(target) / ours, len(target) / seconds(lambda: cipher.update_into(zeros, target), 15)


def main() -> int:
    """Print the tables; return 1 if a ratio is below its least."""
    dp.enable_features("contrib")
    if hasattr(os, "sched_setaffinity"):  # one core for everyone, OpenDP's threads included
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    table = Table(title=f"Exact discrete noise, vectors of {VECTOR:,}, one core")
    for column in ("law", "scale", "dplinear /s", "OpenDP /s", "ratio"):
        table.add_column(column, justify="left" if column == "law" else "right")
    slow = []
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    for scale in SCALES:
        exact = Fraction(scale)
        laplace = dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale=scale)
        gaussian = dp.m.make_gaussian(integers, dp.l2_distance(T="f64"), scale=scale)
        for law, draw, theirs in (
            ("Laplace", partial(discrete.laplace, exact), laplace),
            ("Gaussian", partial(discrete.gaussian, exact**2), gaussian),
        ):
            rate, rival = VECTOR / seconds(partial(draw, VECTOR)), rival_rate(theirs)
            table.add_row(law, f"{scale:g}", f"{rate:.3g}", f"{rival:.3g}", f"{rate / rival:.0f}")
            if rate / rival < LEAST_RATIO[law]:
                slow.append(f"{law} at scale {scale:g}")
    console = Console()
    console.print(table)
    ours, roofline = keystream_rates()
    console.print(
        f"keystream {ours / 1e9:.2f} GB/s, AES-256-CTR alone {roofline / 1e9:.2f} GB/s "
        f"({ours / roofline:.0%} of it)"
    )
    if slow:
        console.print("too slow: " + ", ".join(slow))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
