#!/bin/sh
# Processes running or waiting, averaged over one minute by the kernel.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/loadavg"
read -r load _ <"$PROC_ROOT/loadavg" || no_data "$PROC_ROOT/loadavg is empty"
echo "$load"
