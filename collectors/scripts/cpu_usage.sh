#!/bin/sh
# What the CPUs that a program started here may use did since the last run, as shares of their time.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/uptime" "$PROC_ROOT/self/status" "$PROC_ROOT/stat"
find_allowed_cpus
cpus=
# user and nice already hold guest time, so the fields after steal stay out.
while read -r name user nice system idle iowait irq softirq steal _; do
    case $name in cpu*) ;; *) break ;; esac
    case $allowed in *" $name "*) ;; *) continue ;; esac
    program=$((user + nice)) interrupt=$((${irq:-0} + ${softirq:-0}))
    total=$((program + system + idle + ${iowait:-0} + interrupt + ${steal:-0}))
    cpus="$cpus$name $total $program $system ${iowait:-0} $interrupt ${steal:-0}$NEWLINE"
    [ "$name" != "$last" ] || break
done <"$PROC_ROOT/stat"

compare "$cpus" "$PROC_ROOT/stat"
[ "$grown1" -gt 0 ] || no_data "no tick of the clock has passed since the last sample"
print_share "$grown2" "$grown1" cpu_user_ratio
print_share "$grown3" "$grown1" cpu_system_ratio
print_share "$grown4" "$grown1" cpu_iowait_ratio
print_share "$grown5" "$grown1" cpu_interrupt_ratio
print_share "$grown6" "$grown1" cpu_steal_ratio
