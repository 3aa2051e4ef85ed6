#!/bin/sh
# Space an ordinary user may still fill on the file system of a directory: disk_free_bytes.sh [DIRECTORY], default /.
. "${0%/*}/_lib.sh"

directory=${1:-/}
[ -d "$directory" ] || die "'$directory' is no directory on this node"
# The column before the percentage, because the columns around may hold blanks.
LC_ALL=C df -P -k -- "$directory" | awk '
    NR == 2 { for (i = 3; i <= NF; i++) if ($i ~ /^[0-9]+%$/) { printf "%.0f\n", $(i - 1) * 1024; found = 1; exit } }
    END { exit !found }' || no_data "df knows no free space of '$directory'"
