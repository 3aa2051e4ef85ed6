#!/bin/sh
# Load, processes, open files and time since the start of the node.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

processes= # where the first process is hidden from this user, so are others
[ ! -d "$PROC_ROOT/1" ] || { set -- "$PROC_ROOT"/[0-9]* && processes=$#; }
readable "$PROC_ROOT/uptime" "$PROC_ROOT/loadavg" "$PROC_ROOT/stat"
read -r uptime _ <"$PROC_ROOT/uptime" || :
read -r _ five fifteen threads _ <"$PROC_ROOT/loadavg" || :
files=
[ ! -r "$PROC_ROOT/sys/fs/file-nr" ] || read -r files _ <"$PROC_ROOT/sys/fs/file-nr" || : # some end without a newline
[ -z "$uptime" ] || echo "uptime_seconds $uptime"
[ -z "$threads" ] || printf '%s\n' "load_5m $five" "load_15m $fifteen" "threads_total ${threads#*/}"
[ -z "$files" ] || echo "open_files $files"
[ -z "$processes" ] || echo "processes_total $processes"
# Where there are many CPUs, this file is long, and the shell reads it byte by byte.
exec sed -n 's/^procs_running /processes_running /p; s/^procs_blocked /processes_blocked /p' "$PROC_ROOT/stat"
