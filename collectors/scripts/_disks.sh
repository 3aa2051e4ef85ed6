# shellcheck shell=sh
# Sourced after _lib.sh by what counts disk traffic: every byte once, at the physical disk.

disk_bytes() { # sum over the disks of column "$1" of diskstats, which counts sectors of 512 bytes
    [ -r "$PROC_ROOT/diskstats" ] || die "$PROC_ROOT/diskstats cannot be read"
    # Layers above disks (dm, md, loop, ...) would count a byte again; so would a partition beside its disk.
    awk -v column="$1" '
        $3 !~ /^(loop|ram|zram|dm-|md|sr|fd|bcache|drbd)[0-9]/ && $3 !~ /^nvme[0-9]+c/ { sectors[$3] = $column }
        END {
            for (name in sectors) {
                disk = name
                sub(/[0-9]+$/, "", disk)
                if (disk ~ /[0-9]p$/) sub(/p$/, "", disk)
                if (disk != name && disk in sectors) continue
                total += sectors[name] * 512
                found = 1
            }
            if (found) printf "%.0f\n", total
        }' "$PROC_ROOT/diskstats"
}
