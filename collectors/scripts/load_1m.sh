#!/bin/sh
# Processes running or waiting, averaged over one minute by the kernel.
. "${0%/*}/_lib.sh"

read -r load _ <"$PROC_ROOT/loadavg" || die "$PROC_ROOT/loadavg cannot be read"
echo "$load"
