#!/bin/sh
# Memory that a new program can have without swapping, by the kernel's own estimate.
. "${0%/*}/_lib.sh"

[ -r "$PROC_ROOT/meminfo" ] || die "$PROC_ROOT/meminfo cannot be read"
awk '$1 == "MemAvailable:" { printf "%.0f\n", $2 * 1024; found = 1 } END { exit !found }' "$PROC_ROOT/meminfo" ||
    no_data "$PROC_ROOT/meminfo has no line MemAvailable: the kernel is older than 3.14"
