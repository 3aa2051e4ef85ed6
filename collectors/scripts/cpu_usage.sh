#!/bin/sh
# What the CPUs that a program started here may use did since the last run, as shares of their time.
# shellcheck source=_lib.sh disable=SC2016
. "${LIB:-${0%/*}/_lib.sh}"

# user and nice already hold guest time, so fields 10 and 11 stay out.
difference '
    FILENAME ~ /stat$/ && $1 in allowed {
        total = 0
        for (i = 2; i <= 9; i++) total += $i
        now[$1] = total " " $2 + $3 " " $4 " " $6 " " $7 + $8 " " $9
    }
    END {
        compare()
        if (!grown[1]) quit("no tick of the clock has passed since the last sample")
        kinds = split("user system iowait interrupt steal", kind, " ")
        for (i = 1; i <= kinds; i++) printf "cpu_%s_ratio %.4f\n", kind[i], grown[i + 1] / grown[1]
    }' "$PROC_ROOT/self/status" "$PROC_ROOT/stat"
