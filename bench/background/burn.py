"""Keeps a CPU busy: `burn.py STEPS`, or for ever without; standard library only, as any Python of a node runs it."""

import sys


def burn(steps: int) -> int:
    """The same work everywhere: so many additions."""
    total = 0
    for number in range(steps):
        total += number
    return total


if __name__ == "__main__":
    if len(sys.argv) > 1:
        burn(int(sys.argv[1]))
    while len(sys.argv) == 1:
        burn(1_000_000)
