#!/bin/sh
# Memory and swap: all there is, and what is free, cached or still to be written.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/meminfo"
cached='' found=''
tell() { # NAME KILOBYTES
    printf '%s_bytes %d\n' "$1" $(($2 * 1024))
    found=yes
}
# A line that the kernel does not have is left out. SReclaimable is the last that counts.
while read -r name kilobytes _; do
    case $kilobytes in '' | *[!0-9]*) continue ;; esac
    case $name in
        MemTotal:) tell memory_total "$kilobytes" ;;
        MemFree:) tell memory_free "$kilobytes" ;;
        MemAvailable:) tell memory_available "$kilobytes" ;;
        Buffers: | Cached:) cached=$((${cached:-0} + kilobytes)) ;;
        SwapTotal:) tell swap_total "$kilobytes" ;;
        SwapFree:) tell swap_free "$kilobytes" ;;
        Dirty:) tell memory_dirty "$kilobytes" ;;
        SReclaimable:) cached=$((${cached:-0} + kilobytes)) && break ;;
    esac
done <"$PROC_ROOT/meminfo"
[ -z "$cached" ] || tell memory_cached "$cached" # what free(1) shows as buff/cache
[ -n "$found" ] || no_data "$PROC_ROOT/meminfo has none of the expected lines"
