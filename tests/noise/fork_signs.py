"""Draw, fork and draw again where all signs of a fork but one are hidden; print every word.

    python fork_signs.py generation|pid|page COUNT

What C forks runs none of Python's own hooks: only the number of the process and the page that the
kernel wipes tell of it.
"""

import ctypes
import os
import sys

from dplinear.noise import entropy
from dplinear.noise.entropy import system, words


def draw(count: int) -> list[int]:
    """Return words drawn in two ways."""
    return [int(word) for word in words(system(), count - 1)] + [system().bits(64)]


def main(sign: str, count: int) -> None:
    """Hide the other signs, fork, and print what was drawn before, in the child and after."""
    if sign != "pid":
        os.getpid = lambda: 1234
    if sign != "page":
        entropy._process._page = None
    drawn = draw(count)
    reading, writing = os.pipe()
    if (os.fork() if sign == "generation" else ctypes.PyDLL(None).fork()) == 0:
        os.write(writing, b" ".join(b"%d" % word for word in draw(count)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        drawn += map(int, pipe.read().split())
    os.wait()
    sys.stdout.write(" ".join(map(str, drawn + draw(count))))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
