#!/bin/sh
# Share of the last 10 seconds in which some, or all, processes waited for the CPU, memory or disks (the PSI of Linux).
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

told=
# All processes waiting for the CPU means nothing for a whole machine: the kernel prints a 0 there that is none.
for resource in cpu memory io; do
    [ -r "$PROC_ROOT/pressure/$resource" ] || continue
    while read -r who average _; do
        case $resource-$who-$average in
            cpu-full-*) continue ;;
            *-some-avg10=*.[0-9][0-9] | *-full-avg10=*.[0-9][0-9]) ;;
            *) continue ;;
        esac
        percent=${average#avg10=}
        ratio=$((${percent%.*} * 100 + 1${percent#*.} - 100)) # 12.34 % are 0.1234
        printf '%s_pressure_%s_ratio %d.%04d\n' "$resource" "$who" $((ratio / 10000)) $((ratio % 10000))
        told=yes
    done <"$PROC_ROOT/pressure/$resource"
done 2>/dev/null
[ -n "$told" ] || no_data "$PROC_ROOT/pressure tells nothing: the kernel keeps no pressure stall information"
