#!/bin/sh
# Speed of the fastest network card that is up, in bits per second; virtual cards have none.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

fastest=0
for card in "$SYS_ROOT"/class/net/*; do # reading the speed of a card that is down fails
    if read -r state <"$card/operstate" && [ "$state" = up ] && read -r megabits <"$card/speed"; then
        case $megabits in '' | *[!0-9]*) continue ;; esac
        is_layer "${card##*/}" || [ "$megabits" -le "$fastest" ] || fastest=$megabits
    fi
done 2>/dev/null
[ "$fastest" -gt 0 ] || no_data "no network card that is up tells its speed"
echo "${fastest}000000"
