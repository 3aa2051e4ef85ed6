#!/bin/sh
# Bytes read from all physical disks each second, since the last run.
. "${0%/*}/_lib.sh"
. "${0%/*}/_disks.sh"

bytes=$(disk_bytes 6)
[ -n "$bytes" ] || no_data "$PROC_ROOT/diskstats lists no physical disk"
print_rate "$bytes"
