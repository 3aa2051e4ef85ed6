#!/bin/sh
# Idle share, 0 to 1, of the CPUs that a program started on this node may use, since the last run.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/uptime" "$PROC_ROOT/self/status" "$PROC_ROOT/stat"
find_allowed_cpus
cpus=
# idle and iowait are free; guest time is already in user, so the fields after steal stay out.
while read -r name user nice system idle iowait irq softirq steal _; do
    case $name in cpu*) ;; *) break ;; esac
    case $allowed in *" $name "*) ;; *) continue ;; esac
    free=$((idle + ${iowait:-0}))
    total=$((user + nice + system + free + ${irq:-0} + ${softirq:-0} + ${steal:-0}))
    cpus="$cpus$name $total $free 0 0 0 0$NEWLINE"
    [ "$name" != "$last" ] || break
done <"$PROC_ROOT/stat"

compare "$cpus" "$PROC_ROOT/stat"
[ "$grown1" -gt 0 ] || no_data "no tick of the clock has passed since the last sample"
print_share "$grown2" "$grown1"
