#!/bin/sh
# Traffic of all physical disks each second, and how busy the busiest one was, since the last run.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/uptime" "$PROC_ROOT/diskstats"
disks='' names=' '
# Counted once, at the physical disk: layers above (dm, md, loop, ...) would count a byte again; so would a partition
# beside its disk, after which it is listed. Sectors are of 512 bytes; busy are the milliseconds with work to do.
while read -r _ _ name reads _ read _ writes _ written _ _ busy _; do
    case $name in
        loop[0-9]* | ram[0-9]* | zram[0-9]* | dm-[0-9]* | md[0-9]* | sr[0-9]* | fd[0-9]*) continue ;;
        bcache[0-9]* | drbd[0-9]* | nvme[0-9]*c*) continue ;;
    esac
    disk=${name%"${name##*[!0-9]}"}
    case $disk in *[0-9]p) disk=${disk%p} ;; esac
    case $names in *" $disk "*) continue ;; esac
    names="$names$name "
    disks="$disks$name $busy $reads $read $writes $written 0$NEWLINE"
done <"$PROC_ROOT/diskstats"

compare "$disks" "$PROC_ROOT/diskstats"
print_fine_rate disk_reads_per_second "$grown2"
print_rate disk_read_bytes_per_second $((grown3 * 512))
print_fine_rate disk_writes_per_second "$grown4"
print_rate disk_write_bytes_per_second $((grown5 * 512))
print_share "$most1" $((hundredths * 10)) disk_utilisation_ratio
