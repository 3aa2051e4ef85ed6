#!/bin/sh
# Memory and swap: all there is, and what is free, cached or still to be written.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/meminfo"
# Cached is what free(1) shows as buff/cache. A line that the kernel does not have is left out.
awk '
    BEGIN {
        called["MemTotal:"] = "memory_total"
        called["MemFree:"] = "memory_free"
        called["MemAvailable:"] = "memory_available"
        called["Buffers:"] = called["Cached:"] = called["SReclaimable:"] = "memory_cached"
        called["Dirty:"] = "memory_dirty"
        called["SwapTotal:"] = "swap_total"
        called["SwapFree:"] = "swap_free"
    }
    $1 in called && $2 ~ /^[0-9]+$/ { bytes[called[$1]] += $2 * 1024 }
    END { for (name in bytes) { printf "%s_bytes %.0f\n", name, bytes[name]; found = 1 }; exit !found }
    ' "$PROC_ROOT/meminfo" || no_data "$PROC_ROOT/meminfo has none of the expected lines"
