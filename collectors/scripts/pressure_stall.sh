#!/bin/sh
# Share of the last 10 seconds in which some, or all, processes waited for the CPU, memory or disks (the PSI of Linux).
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

# All processes waiting for the CPU means nothing for a whole machine: the kernel prints a 0 there that is none.
for resource in cpu memory io; do
    [ -r "$PROC_ROOT/pressure/$resource" ] || continue
    while read -r who average _; do
        case $resource-$who-$average in
            cpu-full-*) ;;
            *-some-avg10=* | *-full-avg10=*) echo "$resource" "$who" "${average#avg10=}" ;;
        esac
    done <"$PROC_ROOT/pressure/$resource"
done 2>/dev/null | awk '
    { printf "%s_pressure_%s_ratio %.4f\n", $1, $2, $3 / 100 }
    END { exit !NR }' ||
    no_data "$PROC_ROOT/pressure tells nothing: the kernel keeps no pressure stall information"
