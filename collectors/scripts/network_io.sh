#!/bin/sh
# Traffic of all network cards each second, and what went wrong with it, since the last run.
# shellcheck source=_lib.sh disable=SC2016
. "${LIB:-${0%/*}/_lib.sh}"

# The first byte count may follow the colon without a blank.
difference '
    FILENAME ~ /net\/dev$/ && sub(/:/, " ") && $1 !~ /'"$NETWORK_LAYERS"'/ {
        now[$1] = $2 " " $3 " " $10 " " $11 " " $4 + $12 " " $5 + $13
    }
    END {
        compare()
        printf "network_receive_bytes_per_second %.0f\n", grown[1] / seconds
        printf "network_receive_packets_per_second %.2f\n", grown[2] / seconds
        printf "network_transmit_bytes_per_second %.0f\n", grown[3] / seconds
        printf "network_transmit_packets_per_second %.2f\n", grown[4] / seconds
        printf "network_errors_per_second %.2f\n", grown[5] / seconds
        printf "network_drops_per_second %.2f\n", grown[6] / seconds
    }' "$PROC_ROOT/net/dev"
