#!/bin/sh
# Temperature of the hottest sensor, in degrees Celsius; virtual machines have none.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

hottest=
for sensor in "$SYS_ROOT"/class/thermal/thermal_zone*/temp "$SYS_ROOT"/class/hwmon/hwmon*/temp*_input; do
    read -r thousandths <"$sensor" || continue
    case ${thousandths#-} in '' | *[!0-9]*) continue ;; esac
    # A sensor that is not connected tells what no machine survives.
    [ "$thousandths" -gt -100000 ] && [ "$thousandths" -lt 200000 ] && [ "$thousandths" -ne 0 ] || continue
    [ -n "$hottest" ] && [ "$thousandths" -le "$hottest" ] || hottest=$thousandths
done 2>/dev/null
[ -n "$hottest" ] || no_data "no sensor below $SYS_ROOT tells a temperature"
sign='' tenths=$(((${hottest#-} + 50) / 100))
case $hottest in -*) sign=- ;; esac
echo "$sign$((tenths / 10)).$((tenths % 10))"
