#!/bin/sh
# Speed of the fastest network card that is up, in bits per second; virtual cards have none.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

for card in "$SYS_ROOT"/class/net/*; do # reading the speed of a card that is down fails
    if read -r state <"$card/operstate" && [ "$state" = up ] && read -r megabits <"$card/speed"; then
        echo "${card##*/} $megabits"
    fi
done 2>/dev/null | awk '
    $1 !~ /'"$NETWORK_LAYERS"'/ && $2 > fastest { fastest = $2 }
    END { if (!fastest) exit 1; printf "%.0f\n", fastest * 1000000 }' ||
    no_data "no network card that is up tells its speed"
