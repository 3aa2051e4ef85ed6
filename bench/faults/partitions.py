"""Networks that are cut between machines of the lab: frames that their bridge does not hand on, by nftables."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.info.errors import BenchError

TABLE = "nodewise_faults"


@dataclass(frozen=True)
class Cut:
    """What is lost on the way from one address to another; with `ports`, only what goes to these of the second."""

    source: str
    target: str
    ports: Sequence[int] = ()

    def rules(self, there: bool, back: bool) -> list[str]:
        """Those of one way or both, in the words of nft."""
        listed = "{ " + ", ".join(map(str, self.ports)) + " }"
        asked, answered = (f" tcp dport {listed}", f" tcp sport {listed}") if self.ports else ("", "")
        rules = [f"ip saddr {self.source} ip daddr {self.target}{asked} drop"] if there else []
        return rules + ([f"ip saddr {self.target} ip daddr {self.source}{answered} drop"] if back else [])


@contextmanager
def cut(rules: Sequence[str]) -> Iterator[None]:
    """Have the bridge obey these rules until the end of the block."""
    chain = "\n".join(["type filter hook forward priority 0; policy accept;", *rules])
    heal()
    nft(f"table bridge {TABLE} {{\nchain forward {{\n{chain}\n}}\n}}")
    try:
        yield
    finally:
        heal()


def heal() -> None:
    """Let everything through again."""
    nft(f"table bridge {TABLE}\ndelete table bridge {TABLE}")


def nft(script: str) -> None:
    """BenchError when the kernel does not take it."""
    try:
        done = subprocess.run(["nft", "-f", "-"], input=script, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BenchError("nft is not installed: run scripts/setup --lab") from None
    if done.returncode:
        raise BenchError(f"nft failed: {done.stderr.strip()}")
