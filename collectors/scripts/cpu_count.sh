#!/bin/sh
# CPUs that a program started on this node may use.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/self/status" "$PROC_ROOT/stat"
awk "$ALLOWED_CPUS"'
    $1 in allowed { cpus++ }
    END { if (!cpus) exit 1; print cpus }' "$PROC_ROOT/self/status" "$PROC_ROOT/stat" ||
    no_data "$PROC_ROOT/stat lists none of the CPUs that this process may use"
