#!/bin/sh
# Traffic of all physical disks each second, and how busy the busiest one was, since the last run.
# shellcheck source=_lib.sh disable=SC2016
. "${LIB:-${0%/*}/_lib.sh}"

# Counted once, at the physical disk: layers above (dm, md, loop, ...) would count a byte again; so would a partition
# beside its disk. Columns: operations and sectors of 512 bytes read, the same written, milliseconds with work to do.
difference '
    FILENAME ~ /diskstats$/ && $3 !~ /^(loop|ram|zram|dm-|md|sr|fd|bcache|drbd)[0-9]/ && $3 !~ /^nvme[0-9]+c/ {
        disks[$3] = $4 " " $6 " " $8 " " $10 " " $13
    }
    function whole(name, disk) {
        disk = name
        sub(/[0-9]+$/, "", disk)
        if (disk ~ /[0-9]p$/) sub(/p$/, "", disk)
        return disk == name || !(disk in disks)
    }
    END {
        for (name in disks) if (whole(name)) now[name] = disks[name]
        compare()
        printf "disk_reads_per_second %.2f\n", grown[1] / seconds
        printf "disk_read_bytes_per_second %.0f\n", grown[2] * 512 / seconds
        printf "disk_writes_per_second %.2f\n", grown[3] / seconds
        printf "disk_write_bytes_per_second %.0f\n", grown[4] * 512 / seconds
        busy = most[5] / 1000 / seconds
        printf "disk_utilisation_ratio %.4f\n", (busy < 1 ? busy : 1)
    }' "$PROC_ROOT/diskstats"
