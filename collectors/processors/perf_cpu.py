"""Capability by free CPU, equation (1) of the paper: perf_cpu.py CPU_REQ

    Perf = 1                   if CpuFree >= CpuReq
    Perf = CpuFree / CpuReq    otherwise

CpuFree is the node's cpu_free_ratio; CpuReq is the share of the node's CPU, above 0 and at most 1, that the program
needs. Without a fresh CpuFree there is no capability: exit 3. Beside it: .confidence, by how fresh CpuFree is.
"""

from __future__ import annotations

import sys

from collectors.run import NO_DATA, answer, node_name, service
from infosvc.wire.errors import InfoError, NotFound
from infosvc.wire.records import State
from locality.capability import freshness

SOURCE = "cpu_free_ratio"


def capability(cpu_free: float, cpu_req: float) -> float:
    """Equation (1); ValueError when CpuReq is not a share."""
    if not 0 < cpu_req <= 1:
        raise ValueError(f"CPU_REQ {cpu_req:g} is not a share of the CPU: give a number above 0 and at most 1")
    return 1.0 if cpu_free >= cpu_req else cpu_free / cpu_req


def main() -> int:
    """Read the node's free CPU, print its capability."""
    if len(sys.argv) != 2:
        raise ValueError("give the share of the CPU that the program needs, for example: perf_cpu.py 0.5")
    cpu_req = float(sys.argv[1])
    capability(1.0, cpu_req)  # a wrong argument is an error even while there is nothing to compare
    fresh = [datum for datum in service().data(SOURCE, node=node_name()) if datum.state is State.FRESH]
    if not fresh:
        print(f"no fresh {SOURCE} of {node_name()}", file=sys.stderr)
        return NO_DATA
    free = fresh[0]
    trusted = round(freshness(free.age or 0.0, free.ttl), 2)
    print(answer(f"{capability(free.number(), cpu_req):.4f}", confidence=trusted))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, InfoError) as error:
        print(f"perf_cpu: {error}", file=sys.stderr)
        sys.exit(NO_DATA if isinstance(error, NotFound) else 1)
