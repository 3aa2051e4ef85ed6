# shellcheck shell=sh disable=SC2016,SC2034  # awk programs in quotes, for the collectors to use
# Sourced by every collector: where it reads, the ways it ends without a value, and what growth since its last run is.
set -eu
PROC_ROOT=${PROC_ROOT:-/proc}
SYS_ROOT=${SYS_ROOT:-/sys}

die() { # failure: the reason goes to stderr
    printf '%s\n' "$*" >&2
    exit 1
}

no_data() { # nothing to measure here and now: the outcome that never becomes a 0
    printf '%s\n' "$*" >&2
    exit 3
}

readable() { # every file named must be there
    for file; do
        [ -r "$file" ] || die "$file cannot be read"
    done
}

# A pattern for the names of interfaces above the cards: counting them too would count a byte again.
NETWORK_LAYERS='^(lo$|bond|br[-0-9]|cali|cni|docker|dummy|erspan|flannel|gre|ifb|ip6|ipvlan|lxc|lxd|macv|ovs|sit|tap|team'
NETWORK_LAYERS=$NETWORK_LAYERS'|tun|veth|virbr|vmnet|vnet|vxlan|wg)|[.]'

# awk: the CPUs that this process, and so any program started here, may use; from /proc/self/status, "0-1,3".
ALLOWED_CPUS='
    FILENAME ~ /status$/ && $1 == "Cpus_allowed_list:" {
        ranges = split($2, range, ",")
        for (i = 1; i <= ranges; i++) {
            ends = split(range[i], end, "-")
            for (cpu = end[1] + 0; cpu <= end[ends] + 0; cpu++) allowed["cpu" cpu] = 1
        }
    }'

# awk: a sample is the uptime on a line, then for every thing its name and its counters, which a program puts into
# now[name] as text. compare() keeps the sample, sets `seconds` since the last one, and adds up in grown[1], grown[2]...
# by how much each counter grew, the most of one thing in most[i]. A thing that is new or started again counts from the
# next run on, so that it is never taken for a burst of traffic.
COMPARE='
    BEGIN { CONVFMT = "%.0f" } # some awks make 4.29e+12 of a large whole number
    past && NF == 1 { then = $1 }
    past && NF > 1 { thing = $1; sub(/^[^ ]+ /, ""); was[thing] = $0 }
    past { next }
    FILENAME ~ /uptime$/ { uptime = $1; next }
    function quit(reason) { print reason | "cat 1>&2"; exit 3 }
    function compare(name) {
        for (name in now) things++
        if (!things) quit(FILENAME " lists nothing that this collector measures")
        print uptime >ENVIRON["NEXT"]
        for (name in now) print name, now[name] >ENVIRON["NEXT"]
        if (then == "") quit("the first sample is taken; the next run has a difference")
        seconds = uptime - then
        for (name in now) if (seconds > 0) compared += add(now[name], was[name])
        if (!compared) quit("no time has passed or everything started again since the last sample")
    }
    function add(now_text, was_text, fresh, old, i, columns) {
        columns = split(now_text, fresh, " ")
        if (split(was_text, old, " ") != columns) return 0
        for (i = 1; i <= columns; i++) if (old[i] !~ /^[0-9]+$/ || fresh[i] - old[i] < 0) return 0
        for (i = 1; i <= columns; i++) {
            grown[i] += fresh[i] - old[i]
            if (fresh[i] - old[i] > most[i]) most[i] = fresh[i] - old[i]
        }
        return 1
    }'

# difference PROGRAM FILE...: ends the collector with what the awk PROGRAM, which calls compare(), makes of the FILEs.
difference() {
    program=$1
    shift
    readable "$PROC_ROOT/uptime" "$@"
    [ -d "${STATE_DIR:-}" ] || die "STATE_DIR '${STATE_DIR:-}' is not a directory: name one that keeps the previous sample"
    sample=$STATE_DIR/sample
    [ -e "$sample" ] || printf '' >"$sample" || die "cannot write $sample"
    status=0
    NEXT=$sample.new awk "$ALLOWED_CPUS $COMPARE $program" past=1 "$sample" past=0 "$PROC_ROOT/uptime" "$@" || status=$?
    [ $status -eq 0 ] || [ $status -eq 3 ] || die "cannot compare with $sample"
    # A disk without room leaves it empty, of which busybox's awk says nothing.
    [ ! -e "$sample.new" ] || { [ -s "$sample.new" ] && mv "$sample.new" "$sample"; } || die "cannot write $sample"
    exit $status
}
