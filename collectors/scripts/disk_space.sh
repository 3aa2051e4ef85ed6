#!/bin/sh
# Space and inodes of the file system of a directory: disk_space.sh [DIRECTORY], default /.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

directory=${1:-/}
[ -d "$directory" ] || die "'$directory' is not a directory on this node"
# Free is what an ordinary user may still take. File systems that make inodes as they go tell of none.
stat -f -c '%S %b %a %c %d' -- "$directory" | awk '
    $2 > 0 { printf "disk_total_bytes %.0f\ndisk_free_bytes %.0f\n", $1 * $2, $1 * $3; found = 1 }
    $4 > 0 { printf "disk_inodes_total %.0f\ndisk_inodes_free %.0f\n", $4, $5; found = 1 }
    END { exit !found }' || no_data "the file system of '$directory' tells no size"
