# shellcheck shell=sh
# Sourced by every collector: where it reads, where it keeps its sample, and the ways it ends without a value.
set -eu
PROC_ROOT=${PROC_ROOT:-/proc}

die() { # failure: the reason goes to stderr
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

no_data() { # nothing to measure here and now: the outcome that never becomes a 0
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 3
}

exchange_sample() { # keeps "$1" for the next run and sets PREVIOUS to what the last run kept
    [ -d "${STATE_DIR:-}" ] || die "STATE_DIR '${STATE_DIR:-}' is no directory: name one that keeps the previous sample"
    KEPT=$STATE_DIR/${0##*/}.sample
    PREVIOUS=$(cat "$KEPT" 2>/dev/null) || PREVIOUS=
    { printf '%s\n' "$1" >"$KEPT.new" && mv "$KEPT.new" "$KEPT"; } || die "cannot write $KEPT"
    [ -n "$PREVIOUS" ] || no_data "the first sample is taken; the next run has a difference"
}

print_rate() { # growth per second of the counter "$1" since the last run
    read -r uptime _ <"$PROC_ROOT/uptime" || die "$PROC_ROOT/uptime cannot be read"
    exchange_sample "$uptime $1"
    echo "$PREVIOUS $uptime $1" | awk 'NF != 4 || $3 <= $1 || $4 < $2 { exit 1 } { printf "%.0f\n", ($4 - $2) / ($3 - $1) }' ||
        no_data "the counters started again since the last sample"
}
