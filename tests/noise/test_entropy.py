import hashlib
import inspect
import os
import pickle
import platform
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dplinear.noise import discrete, entropy, simulation
from dplinear.noise.entropy import Entropy, Keystream, SeededEntropy, system, words

from .laws import FALSE_ALARM, misfit

# Forking beside threads is what these tests are about; newer Pythons warn of it.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

PER_WORKER = 40


def draw_some() -> list[int]:
    """Return 64-bit words drawn in every way the room offers."""
    drawn = [int(word) for word in words(system(), PER_WORKER - 3)]
    drawn += [system().bits(64) for _ in range(2)]
    return [*drawn, int(discrete.gaussian(2**100, 1)[0])]


def in_child(work: Callable[[], list[int]]) -> list[int]:
    """Return what `work` returns in a forked child."""
    return collect([start_child(work)])


def start_child(work: Callable[[], list[int]]) -> int:
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(work(), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    return reading


def collect(pipes: list[int]) -> list[int]:
    drawn: list[int] = []
    for pipe in pipes:
        with os.fdopen(pipe, "rb") as stream:
            drawn += pickle.load(stream)
        os.wait()
    return drawn


def assert_distinct(drawn: list[int], count: int) -> None:
    # Equal words by chance: below 2^-40 for the few thousand words of a test.
    assert len(drawn) == count
    assert len(set(drawn)) == count


@pytest.mark.parametrize("parent_drew", [False, True])
def test_32_forked_workers_never_share_a_draw(parent_drew: bool) -> None:
    before = draw_some() if parent_drew else []
    drawn = collect([start_child(draw_some) for _ in range(32)])
    assert_distinct(before + drawn + draw_some(), len(before) + 33 * PER_WORKER)


def test_grandchildren_never_share_a_draw() -> None:
    def family() -> list[int]:
        grandchildren = collect([start_child(draw_some) for _ in range(4)])
        return draw_some() + grandchildren + in_child(draw_some)

    before = draw_some()
    drawn = collect([start_child(family) for _ in range(4)])
    assert_distinct(before + drawn + draw_some(), 26 * PER_WORKER)


def test_threads_never_share_a_draw() -> None:
    drawn: list[int] = []

    def work() -> None:
        drawn.extend(draw_some())

    run_threads(work, 16)
    assert_distinct(drawn, 16 * PER_WORKER)
    streams = [entropy._own_stream()[0]]
    run_threads(lambda: streams.append(entropy._own_stream()[0]), 1)
    assert streams[0] is not streams[1]


def test_forks_from_threads_never_share_a_draw() -> None:
    pipes: list[int] = []
    drawn: list[int] = []

    def work() -> None:
        drawn.extend(draw_some())
        pipes.append(start_child(threaded))
        drawn.extend(draw_some())

    def threaded() -> list[int]:
        inner = draw_some()
        run_threads(lambda: inner.extend(draw_some()), 3)
        return inner

    run_threads(work, 8)
    assert_distinct(drawn + collect(pipes), (16 + 32) * PER_WORKER)


def run_threads(work: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("sign", ["generation", "pid", "page"])
def test_each_sign_of_a_fork_is_enough(sign: str) -> None:
    """In a process of its own: a child that C forks waits for ever for threads of its parent."""
    if sign == "page" and entropy._process._page is None:
        pytest.skip("this kernel has no page that is wiped on fork")
    script = Path(__file__).with_name("fork_signs.py")
    said = subprocess.run(
        [sys.executable, str(script), sign, str(PER_WORKER)],
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    )
    assert_distinct([int(word) for word in said.stdout.split()], 3 * PER_WORKER)


@pytest.mark.parametrize("way", ["fill", "bits"])
def test_a_fork_amid_a_draw_is_noticed(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    system().bits(64)
    reading, writing = os.pipe()
    born: list[int] = []

    def forking(method: Callable[..., bytes | None]) -> Callable[..., bytes | None]:
        def call(self: Keystream, argument: object) -> bytes | None:
            result = method(self, argument)
            if not born:
                born.append(os.fork())
            return result

        return call

    monkeypatch.setattr(Keystream, "write", forking(Keystream.write))
    monkeypatch.setattr(Keystream, "read", forking(Keystream.read))
    drawn = [int(w) for w in words(system(), 4)] if way == "fill" else [system().bits(256)]
    if born[0] == 0:
        os.write(writing, pickle.dumps(drawn))
        os._exit(0)
    os.close(writing)
    assert not set(collect([reading])) & set(drawn)


def test_the_keystream_is_aes_256_in_counter_mode() -> None:
    # AES-256 of the zero block under the zero key (NIST AESAVS, GFSbox and others).
    stream = Keystream(bytes(32), refreshed=False)
    assert stream.read(16).hex() == "dc95c078a2408989ad48a21492842087"


def read(stream: Keystream) -> bytes:
    return stream.read(1 << 8)


def write(stream: Keystream) -> bytes:
    target = bytearray(1 << 8)
    stream.write(memoryview(target))
    return bytes(target)


@pytest.mark.parametrize("draw", [read, write])
@pytest.mark.parametrize("refreshed", [False, True])
def test_keys_are_replaced(
    refreshed: bool, draw: Callable[[Keystream], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    one_key = Keystream(bytes(32), refreshed=False).read(1 << 12)
    monkeypatch.setattr(entropy, "REKEY_BYTES", 1 << 10)
    stream = Keystream(bytes(32), refreshed=refreshed)
    drawn = b"".join(draw(stream) for _ in range(16))
    assert drawn[: 1 << 10] == one_key[: 1 << 10]
    blocks = [drawn[i : i + 16] for i in range(0, 1 << 12, 16)]
    # What follows is neither the old stream nor shows the 32 bytes the new key was made of.
    assert not set(blocks[64:]) & {one_key[i : i + 16] for i in range(0, 1 << 12, 16)}
    assert len(set(blocks)) == len(blocks)
    if refreshed:
        again = Keystream(bytes(32), refreshed=True)
        assert b"".join(draw(again) for _ in range(16))[1 << 10 :] != drawn[1 << 10 :]


def test_the_next_key_is_a_hash_of_what_was_never_handed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = Keystream(bytes(32), refreshed=False).read(1 << 11)
    asked: list[int] = []

    def given(count: int) -> bytes:
        asked.append(count)
        return bytes([7]) * count

    monkeypatch.setattr(os, "urandom", given)
    monkeypatch.setattr(entropy, "REKEY_BYTES", 1 << 10)
    for refreshed, fresh in ((False, b""), (True, bytes([7]) * 32)):
        stream = Keystream(bytes(32), refreshed=refreshed)
        assert stream.read(1 << 10) == whole[: 1 << 10]
        key = hashlib.sha256(whole[1 << 10 : (1 << 10) + 32] + fresh).digest()
        assert stream.read(1 << 10) == Keystream(key, refreshed=False).read(1 << 10)
    assert asked == [32]


def test_a_key_serves_for_64_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[bytes] = []
    start = Keystream._start

    def noted(self: Keystream, key: bytes) -> None:
        started.append(key)
        start(self, key)

    monkeypatch.setattr(Keystream, "_start", noted)
    stream = Keystream(bytes(32), refreshed=False)
    for _ in range(1 << 10):
        stream.read(1 << 16)
    assert len(started) == 1
    stream.read(1)
    assert len(started) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such pages")
def test_the_page_that_tells_a_fork_needs_no_file() -> None:
    def without_files() -> list[int]:
        os.close(0)
        return [int(entropy._wiped_page() is None)]

    assert in_child(without_files) == [int(entropy._wiped_page() is None)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such pages")
def test_the_page_that_tells_a_fork_is_cleared_in_a_child_and_kept_here() -> None:
    page = entropy._wiped_page()
    version = [int(part) for part in platform.release().split("-")[0].split(".")[:2]]
    assert (page is None) is (version < [4, 14])
    if page is not None:
        page[0] = 1
        assert in_child(lambda: [page[0]]) == [0]
        assert page[0] == 1


def test_reads_and_fills_of_any_length_follow_one_stream() -> None:
    stream = SeededEntropy(bytes(32))
    whole = words(SeededEntropy(bytes(32)), 40_000)
    parts = [words(stream, n) for n in (0, 1, 7, 8192, 20_000, 11_800)]
    assert np.array_equal(np.concatenate(parts), whole)
    long = SeededEntropy(bytes(32)).bits(8 * 8 * 40_000)
    assert long.to_bytes(8 * 40_000, "big") == whole.tobytes()


def test_bytes_are_uniform() -> None:
    drawn = words(system(), 10**5).view(np.uint8)
    assert misfit(np.bincount(drawn, minlength=256), [1 / 256] * 256) > FALSE_ALARM
    assert min(system().bits(3) for _ in range(100)) >= 0
    assert max(system().bits(3) for _ in range(100)) < 8


def test_the_seeded_door_is_reproducible_and_marked() -> None:
    one, same, other = (simulation.entropy(seed) for seed in (5, 5, 6))
    assert np.array_equal(words(one, 100), words(same, 100))
    assert not np.array_equal(words(one, 100), words(other, 100))
    assert one.simulated
    assert np.array_equal(
        discrete.gaussian(10**6, 10**5, entropy=simulation.entropy(5)),
        discrete.gaussian(10**6, 10**5, entropy=simulation.entropy(5)),
    )
    assert simulation.generator(3).random() == simulation.generator(3).random()


def test_the_system_entropy_has_no_seed_and_is_not_marked() -> None:
    assert not inspect.signature(system).parameters
    assert not inspect.signature(entropy.SystemEntropy).parameters
    assert not system().simulated
    with pytest.raises(AttributeError):
        system().simulated = True  # type: ignore[misc]


def test_the_system_entropy_travels_between_processes_without_its_key() -> None:
    copy: Entropy = pickle.loads(pickle.dumps(system()))
    assert not set(words(copy, 50).tolist()) & set(words(system(), 50).tolist())


@pytest.mark.parametrize("seed", [-1, 1.5, "5", None, True])
def test_seeds_are_whole_numbers(seed: int) -> None:
    with pytest.raises((TypeError, ValueError), match=r"The 'seed' parameter of simulation\."):
        simulation.entropy(seed)
    with pytest.raises((TypeError, ValueError), match=r"The 'seed' parameter of simulation\."):
        simulation.generator(seed)


def test_a_child_is_a_new_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Callable[[], None]] = []

    def noted(*, after_in_child: Callable[[], None]) -> None:
        told.append(after_in_child)

    monkeypatch.setattr(os, "register_at_fork", noted)
    process = entropy._Process()
    before = process.token()
    assert process.token() == before
    told[0]()  # what the system calls in a child
    assert process.token() == (before[0] + 1, before[1])


def test_signs_of_a_fork_that_a_system_lacks_are_done_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "register_at_fork")
    monkeypatch.setattr(entropy, "_MADV_WIPEONFORK", 10**6)  # an older kernel: invalid argument
    assert entropy._Process().token() == (0, os.getpid())
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(entropy, "_MADV_WIPEONFORK", 18)
    assert entropy._wiped_page() is None


@pytest.mark.parametrize("way", ["fill", "bits"])
def test_a_draw_is_made_anew_when_the_process_has_changed(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = iter([(-1, 0), (-2, 0), (-3, 0), (-3, 0)])
    monkeypatch.setattr(entropy._process, "token", lambda: next(tokens))
    keys = [bytes(32), bytes([1] * 32)]
    monkeypatch.setattr(os, "urandom", lambda count: keys.pop(0)[:count])
    drawn = words(system(), 2).tobytes() if way == "fill" else system().bits(128).to_bytes(16)
    assert drawn == Keystream(bytes([1] * 32), refreshed=False).read(16)
    monkeypatch.setattr(entropy, "_local", entropy._Local())
