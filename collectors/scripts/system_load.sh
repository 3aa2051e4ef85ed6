#!/bin/sh
# Load, processes, open files and time since the start of the node.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

processes= # where the first process is hidden from this user, so are others
[ ! -d "$PROC_ROOT/1" ] || { set -- "$PROC_ROOT"/[0-9]* && processes=$#; }
set -- "$PROC_ROOT/uptime" "$PROC_ROOT/loadavg" "$PROC_ROOT/stat"
readable "$@"
[ ! -r "$PROC_ROOT/sys/fs/file-nr" ] || set -- "$@" "$PROC_ROOT/sys/fs/file-nr"
awk -v processes="$processes" '
    FILENAME ~ /uptime$/ { print "uptime_seconds", $1 }
    FILENAME ~ /loadavg$/ {
        print "load_5m", $2
        print "load_15m", $3
        print "threads_total", substr($4, index($4, "/") + 1)
    }
    $1 == "procs_running" { print "processes_running", $2 }
    $1 == "procs_blocked" { print "processes_blocked", $2 }
    FILENAME ~ /file-nr$/ { print "open_files", $1 }
    END { if (processes != "") print "processes_total", processes }' "$@"
