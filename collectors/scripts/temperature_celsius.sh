#!/bin/sh
# Temperature of the hottest sensor, in degrees Celsius; virtual machines have none.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

for sensor in "$SYS_ROOT"/class/thermal/thermal_zone*/temp "$SYS_ROOT"/class/hwmon/hwmon*/temp*_input; do
    if read -r thousandths <"$sensor"; then echo "$thousandths"; fi
done 2>/dev/null | awk '
    # A sensor that is not connected tells what no machine survives.
    $1 > -100000 && $1 < 200000 && $1 != 0 && (!found || $1 > hottest) { hottest = $1; found = 1 }
    END { if (!found) exit 1; printf "%.1f\n", hottest / 1000 }' ||
    no_data "no sensor below $SYS_ROOT tells a temperature"
