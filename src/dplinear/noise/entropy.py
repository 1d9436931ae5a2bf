"""Cryptographic randomness: an AES-256-CTR keystream keyed by the operating system.

Every sampler of this room draws from an `Entropy`. `system()` is the one that protects data: it has
no seed, each thread has a key of its own, and no process ever continues its parent's keystream
(docs/noise.md, "Fork safety"). The seeded one is behind `dplinear.noise.simulation`.
"""

import hashlib
import mmap
import os
import sys
import threading
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

Words = NDArray[np.uint64]

REKEY_BYTES = 1 << 26
_BLOCK = memoryview(bytes(1 << 16))
_MADV_WIPEONFORK = 18  # Linux's number, which the mmap module does not name


class Entropy(Protocol):
    """A source of uniform random bits.

    `simulated` is true where the bits can be reproduced, so that they protect nobody.
    """

    @property
    def simulated(self) -> bool:
        """Whether the bits come from a seed."""
        ...

    def fill(self, words: Words) -> None:
        """Overwrite a contiguous array with random 64-bit words."""
        ...

    def bits(self, count: int) -> int:
        """Return an integer of `count` random bits."""
        ...


class Keystream:
    """AES-256-CTR under a key that is replaced every `REKEY_BYTES` (fast key erasure).

    Requires: a key of 32 bytes, used nowhere else; one thread at a time.
    Promises: the next key is a hash of 32 bytes of the stream that are never handed out and, if
    `refreshed`, of 32 from the operating system; so no key reveals what an earlier one gave.
    """

    def __init__(self, key: bytes, *, refreshed: bool) -> None:
        self._refreshed = refreshed
        self._start(key)

    def _start(self, key: bytes) -> None:
        # A key is used for one stream only, so the counter may begin at zero.
        self._cipher: CipherContext = Cipher(
            algorithms.AES256(key), modes.CTR(bytes(16))
        ).encryptor()
        self._left = REKEY_BYTES

    def _rekey(self) -> None:
        fresh = os.urandom(32) if self._refreshed else b""
        self._start(hashlib.sha256(self._cipher.update(_BLOCK[:32]) + fresh).digest())

    def _zeros(self, count: int) -> memoryview:
        """Return the plain text of the next bytes, under a new key if the old one has served."""
        if count > self._left:
            self._rekey()
        self._left -= count
        return _BLOCK[:count]

    def read(self, count: int) -> bytes:
        """Return `count` bytes."""
        pieces = []
        while count > 0:
            zeros = self._zeros(min(count, len(_BLOCK)))
            pieces.append(self._cipher.update(zeros))
            count -= len(zeros)
        return b"".join(pieces)

    def write(self, target: memoryview) -> None:
        """Overwrite a buffer of bytes."""
        # cryptography 42 wants 15 bytes of room after what it writes, so the last 16 are copied.
        start, last = 0, max(0, len(target) - 16)
        while start < last:
            stop = min(last, start + len(_BLOCK))
            zeros = self._zeros(stop - start)
            self._cipher.update_into(zeros, target[start : stop + 15])
            start = stop
        target[last:] = self.read(len(target) - last)


def _bytes_of(words: Words) -> memoryview:
    return words.view(np.uint8).data


def _integer(data: bytes, count: int) -> int:
    return int.from_bytes(data, "big") >> (8 * len(data) - count)


def _wiped_page() -> mmap.mmap | None:
    """Return a page that Linux clears in every child, or None where there is no such page."""
    if sys.platform != "linux":
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(_MADV_WIPEONFORK)
    except (OSError, ValueError):  # a kernel older than 4.14
        return None
    return page


class _Process:
    """Tells a process from its parent, by three signs of which any one is enough."""

    def __init__(self) -> None:
        self.generation = 0
        self._page = _wiped_page()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._count_fork)

    def _count_fork(self) -> None:
        self.generation += 1

    def token(self) -> tuple[int, int]:
        """Return what no relative of this process returns."""
        # The generation misses forks made in C, the pid misses a pid used again; the page misses
        # neither, where the kernel has it.
        if self._page is not None and self._page[0] == 0:
            self.generation += 1
            self._page[0] = 1
        return self.generation, os.getpid()


_process = _Process()


@dataclass
class _Local(threading.local):
    token: tuple[int, int] | None = None
    stream: Keystream | None = None


_local = _Local()


def _own_stream() -> tuple[Keystream, tuple[int, int]]:
    token = _process.token()
    stream = _local.stream
    if stream is None or _local.token != token:
        stream = Keystream(os.urandom(32), refreshed=True)
        _local.stream, _local.token = stream, token
    return stream, token


@dataclass(frozen=True)
class SystemEntropy:
    """Randomness that protects data: keyed by the operating system, one key per thread.

    Promises: threads, forked children and their children never share a word.
    """

    simulated: bool = field(default=False, init=False)

    def fill(self, words: Words) -> None:
        """Overwrite a contiguous array with random 64-bit words."""
        while True:
            stream, token = _own_stream()
            stream.write(_bytes_of(words))
            # A signal handler may have forked meanwhile: then the child must draw again.
            if _process.token() == token:
                return

    def bits(self, count: int) -> int:
        """Return an integer of `count` random bits."""
        while True:
            stream, token = _own_stream()
            data = stream.read(-(-count // 8))
            if _process.token() == token:
                return _integer(data, count)


_system = SystemEntropy()


def system() -> Entropy:
    """Return the entropy that protects data. It has no seed."""
    return _system


def words(entropy: Entropy, count: int) -> Words:
    """Return `count` random 64-bit words."""
    drawn = np.empty(count, np.uint64)
    entropy.fill(drawn)
    return drawn


class SeededEntropy:
    """The same keystream from a given key: reproducible, so it protects nobody.

    Threads may share it (then the order of their draws is theirs to fix); a forked child repeats
    what its parent draws, as any other seeded generator does.
    """

    def __init__(self, key: bytes) -> None:
        self._stream = Keystream(key, refreshed=False)
        self._lock = threading.Lock()

    @property
    def simulated(self) -> bool:
        """Always true."""
        return True

    def fill(self, words: Words) -> None:
        """Overwrite a contiguous array with the next 64-bit words."""
        with self._lock:
            self._stream.write(_bytes_of(words))

    def bits(self, count: int) -> int:
        """Return an integer of the next `count` bits."""
        with self._lock:
            return _integer(self._stream.read(-(-count // 8)), count)
