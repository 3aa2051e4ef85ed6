#!/bin/sh
# CPUs that a program started on this node may use.
. "${0%/*}/_lib.sh"
. "${0%/*}/_cpus.sh"

lines=$(allowed_cpu_lines)
[ -n "$lines" ] || no_data "$PROC_ROOT/stat lists none of the CPUs that this process may use"
echo "$lines" | wc -l
