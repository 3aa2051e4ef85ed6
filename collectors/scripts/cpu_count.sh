#!/bin/sh
# CPUs that a program started on this node may use.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/self/status" "$PROC_ROOT/stat"
find_allowed_cpus
cpus=0
while read -r name _; do
    case $name in cpu*) ;; *) break ;; esac
    case $allowed in *" $name "*) cpus=$((cpus + 1)) ;; esac
    [ "$name" != "$last" ] || break
done <"$PROC_ROOT/stat"
[ "$cpus" -gt 0 ] || no_data "$PROC_ROOT/stat lists none of the CPUs that this process may use"
echo "$cpus"
