# shellcheck shell=sh
# Sourced after _lib.sh by what counts network traffic.

network_bytes() { # sum over all interfaces but lo of column "$1" of net/dev, counted after the interface's name
    [ -r "$PROC_ROOT/net/dev" ] || die "$PROC_ROOT/net/dev cannot be read"
    # The first byte count may follow the colon without a blank.
    awk -v column="$1" '
        NR > 2 && sub(/:/, " ") && $1 != "lo" { total += $(column + 1); found = 1 }
        END { if (found) printf "%.0f\n", total }' "$PROC_ROOT/net/dev"
}
