#!/bin/sh
# Idle share, 0 to 1, of the CPUs that a program started on this node may use, since the last run.
. "${0%/*}/_lib.sh"
. "${0%/*}/_cpus.sh"

# One line "CPUS TOTAL FREE": idle and iowait are free; guest time is already in user, so fields 10 and 11 stay out.
lines=$(allowed_cpu_lines)
sample=$(echo "$lines" | awk '
    { cpus = cpus $1; free += $5 + $6; for (i = 2; i <= 9; i++) total += $i }
    END { if (total > 0) printf "%s %.0f %.0f\n", cpus, total, free }')
[ -n "$sample" ] || no_data "$PROC_ROOT/stat lists none of the CPUs that this process may use"
exchange_sample "$sample"
echo "$PREVIOUS $sample" | awk '
    NF != 6 || $1 != $4 || $5 <= $2 || $6 < $3 { exit 1 }
    { ratio = ($6 - $3) / ($5 - $2); printf "%.4f\n", (ratio > 1 ? 1 : ratio) }' ||
    no_data "the CPUs or their counters changed, or no tick passed, since the last sample"
