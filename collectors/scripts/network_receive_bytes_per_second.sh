#!/bin/sh
# Bytes received each second by all network interfaces but the loopback, since the last run.
. "${0%/*}/_lib.sh"
. "${0%/*}/_network.sh"

bytes=$(network_bytes 1)
[ -n "$bytes" ] || no_data "$PROC_ROOT/net/dev lists no interface but lo"
print_rate "$bytes"
