#!/bin/sh
# Space and inodes of the file system of a directory: disk_space.sh [DIRECTORY], default /.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

directory=${1:-/} found=''
[ -d "$directory" ] || die "'$directory' is not a directory on this node"
numbers=$(stat -f -c '%S %b %a %c %d' -- "$directory") || no_data "the file system of '$directory' tells no size"
# shellcheck disable=SC2086
set -- $numbers
# Free is what an ordinary user may still take. File systems that make inodes as they go tell of none.
if [ "$2" -gt 0 ]; then
    found=yes && printf '%s\n' "disk_total_bytes $(($1 * $2))" "disk_free_bytes $(($1 * $3))"
fi
if [ "$4" -gt 0 ]; then
    found=yes && printf '%s\n' "disk_inodes_total $4" "disk_inodes_free $5"
fi
[ -n "$found" ] || no_data "the file system of '$directory' tells no size"
