#!/bin/sh
# The collector of the paper: the share of CPU time in use, 0 to 1, since its last run (on the first run: since boot).
#
# It needs nothing but /proc, so it can stand anywhere on a node and be registered under its own absolute path:
#   nodewise producer put cpu_usage_ratio --cmd /usr/Apps/bin/getCpuUsage.sh --time-max 5 --unit ratio
set -eu

# The first line of stat: cpu user nice system idle iowait irq softirq steal ..., in clock ticks since boot.
read -r _ user nice system idle iowait irq softirq steal _ <"${PROC_ROOT:-/proc}/stat"
free=$((idle + iowait))
total=$((user + nice + system + free + irq + softirq + steal))

last_total=0
last_free=0
if [ -n "${STATE_DIR:-}" ]; then
    sample=$STATE_DIR/getCpuUsage.sample
    if [ -f "$sample" ]; then
        read -r last_total last_free <"$sample"
    fi
    echo "$total $free" >"$sample.new"
    mv "$sample.new" "$sample"
fi

# Counters that did not grow (no tick passed, or the machine started again) give no share: exit 3 means no data.
echo "$total $free $last_total $last_free" | awk '
    $1 <= $3 || $2 < $4 { exit 3 }
    { used = 1 - ($2 - $4) / ($1 - $3); printf "%.4f\n", (used < 0 ? 0 : used) }'
