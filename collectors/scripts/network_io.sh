#!/bin/sh
# Traffic of all network cards each second, and what went wrong with it, since the last run.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/uptime" "$PROC_ROOT/net/dev"
cards=
# The first byte count may follow the colon without a blank. Two lines of headings have no numbers.
while IFS=' :' read -r name in_bytes in_packets in_errors in_drops _ _ _ _ bytes packets errors drops _; do
    case $in_bytes in '' | *[!0-9]*) continue ;; esac
    is_layer "$name" || cards="$cards$name $in_bytes $in_packets $bytes $packets \
$((in_errors + errors)) $((in_drops + drops))$NEWLINE"
done <"$PROC_ROOT/net/dev"

compare "$cards" "$PROC_ROOT/net/dev"
print_rate network_receive_bytes_per_second "$grown1"
print_fine_rate network_receive_packets_per_second "$grown2"
print_rate network_transmit_bytes_per_second "$grown3"
print_fine_rate network_transmit_packets_per_second "$grown4"
print_fine_rate network_errors_per_second "$grown5"
print_fine_rate network_drops_per_second "$grown6"
