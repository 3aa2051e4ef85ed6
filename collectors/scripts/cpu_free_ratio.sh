#!/bin/sh
# Idle share, 0 to 1, of the CPUs that a program started on this node may use, since the last run.
# shellcheck source=_lib.sh disable=SC2016
. "${LIB:-${0%/*}/_lib.sh}"

# idle and iowait are free; guest time is already in user, so fields 10 and 11 stay out.
difference '
    FILENAME ~ /stat$/ && $1 in allowed {
        total = 0
        for (i = 2; i <= 9; i++) total += $i
        now[$1] = total " " $5 + $6
    }
    END {
        compare()
        if (!grown[1]) quit("no tick of the clock has passed since the last sample")
        printf "%.4f\n", (grown[2] < grown[1] ? grown[2] / grown[1] : 1)
    }' "$PROC_ROOT/self/status" "$PROC_ROOT/stat"
