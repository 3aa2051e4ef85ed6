# shellcheck shell=sh disable=SC2034  # variables for the collectors to use
# Sourced by every collector: where it reads, the ways it ends without a value, and what growth since its last run is.
# The shell itself does the work: each program that a collector starts costs a node as much as the whole rest of it.
set -eu
PROC_ROOT=${PROC_ROOT:-/proc}
SYS_ROOT=${SYS_ROOT:-/sys}
NEWLINE='
'

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

is_layer() { # NAME of an interface above the cards: counting it too would count a byte again
    case $1 in
        lo | bond* | br[0-9-]* | cali* | cni* | docker* | dummy* | erspan* | flannel* | gre* | ifb* | ip6* | ipvlan* | \
            lxc* | lxd* | macv* | ovs* | sit* | tap* | team* | tun* | veth* | virbr* | vmnet* | vnet* | vxlan* | wg*) ;;
        *.*) ;;
        *) return 1 ;;
    esac
}

# Sets `allowed`, " cpu0 cpu1 cpu3 ": the CPUs that this process, and so any program started here, may use; and `last`.
# After that one /proc/stat is not read on: the shell reads byte by byte, and the next line is a long one.
find_allowed_cpus() {
    allowed=' ' last='' ranges=''
    while read -r key list; do
        [ "$key" != Cpus_allowed_list: ] || { ranges="$list," && break; }
    done <"$PROC_ROOT/self/status"
    while [ -n "$ranges" ]; do # "0-1,3,"
        range=${ranges%%,*} ranges=${ranges#*,}
        cpu=${range%-*}
        while [ "$cpu" -le "${range#*-}" ]; do
            last=cpu$cpu cpu=$((cpu + 1))
            allowed="$allowed$last "
        done
    done
}

# compare THINGS FILE: by how much the counters of all things grew since the last run: `grown1` to `grown6`, the most that
# one's first counter did: `most1`, and the time: `hundredths` of a second. THINGS has a line for each, its name and six
# whole numbers, as read from FILE. A thing that is new or started again counts from the next run on, so that it is never
# taken for a burst of traffic. Two samples take turns, so that a disk without room leaves the last one whole.
compare() {
    [ -d "${STATE_DIR:-}" ] || die "STATE_DIR '${STATE_DIR:-}' is not a directory: name one that keeps the previous sample"
    [ -n "$1" ] || no_data "$2 lists nothing that this collector measures"
    read -r uptime _ <"$PROC_ROOT/uptime" || :
    count_hundredths "$uptime"
    now=$hundredths then='' old='' next=$STATE_DIR/sample
    read_sample "$STATE_DIR/sample" "$STATE_DIR/sample.new"
    read_sample "$STATE_DIR/sample.new" "$STATE_DIR/sample"
    printf '%s\n%send\n' "$uptime" "$1" >"$next" || die "cannot write $next"

    [ -n "$then" ] || no_data "the first sample is taken; the next run has a difference"
    hundredths=$((now - then)) compared='' grown1=0 grown2=0 grown3=0 grown4=0 grown5=0 grown6=0 most1=0
    [ "$hundredths" -eq 0 ] || add_all "$1"
    [ -n "$compared" ] || no_data "no time has passed or everything started again since the last sample"
}

read_sample() { # FILE OTHER: takes it if it is whole, and later than what was taken, but not from before a restart
    [ -f "$1" ] || return 0
    readable "$1"
    {
        read -r line || return 0
        count_hundredths "$line"
        [ -n "$hundredths" ] && [ "$hundredths" -le "$now" ] && [ "$hundredths" -ge "${then:-0}" ] || return 0
        text=
        while read -r line; do text=$text$line$NEWLINE; done
    } <"$1"
    case $text in *"${NEWLINE}end$NEWLINE") then=$hundredths old=$text next=$2 ;; esac
}

count_hundredths() { # SECONDS, as 12.5: `hundredths` of a second; nothing where it is no number
    hundredths='' part=${1#*.}00
    case $1 in
        '' | *[!0-9.]* | .* | *.*.*) return ;;
        *.*) ;;
        *) part=00 ;;
    esac
    hundredths=$((${1%%.*} * 100 + 1${part%"${part#??}"} - 100))
}

add_all() { # THINGS
    set -f # a name is no pattern
    # shellcheck disable=SC2086
    set -- $1
    while [ $# -ge 7 ]; do
        case $old in # it mostly is the next one
            "$1 "*) was=${old#"$1 "} && old=${was#*"$NEWLINE"} ;;
            *"$NEWLINE$1 "*) was=${old#*"$NEWLINE$1 "} ;;
            *) was= ;;
        esac
        was=${was%%"$NEWLINE"*}
        # shellcheck disable=SC2086
        case $was in *[!0-9\ ]*) ;; *) add_one "$2" "$3" "$4" "$5" "$6" "$7" $was ;; esac
        shift 7
    done
    set +f
}

add_one() { # six counters now, as many before
    [ $# -eq 12 ] || return 0
    a=$(($1 - $7)) b=$(($2 - $8)) c=$(($3 - $9)) d=$(($4 - ${10})) e=$(($5 - ${11})) f=$(($6 - ${12}))
    [ $((a | b | c | d | e | f)) -ge 0 ] || return 0 # one below 0 makes it so
    compared=yes grown1=$((grown1 + a)) grown2=$((grown2 + b)) grown3=$((grown3 + c)) grown4=$((grown4 + d))
    grown5=$((grown5 + e)) grown6=$((grown6 + f))
    [ "$a" -le "$most1" ] || most1=$a
}

# Numbers, rounded, since the shell has whole ones only. A share is at most 1; NAME may be left out.
print_share() { # PART WHOLE [NAME]
    share=$(((20000 * $1 + $2) / (2 * $2)))
    [ "$share" -le 10000 ] || share=10000
    printf '%s%d.%04d\n' "${3:+$3 }" $((share / 10000)) $((share % 10000))
}

print_rate() { # NAME GROWN: whole ones each second
    printf '%s %d\n' "$1" $((($2 * 200 + hundredths) / (2 * hundredths)))
}

print_fine_rate() { # NAME GROWN: with two decimals
    rate=$((($2 * 20000 + hundredths) / (2 * hundredths)))
    printf '%s %d.%02d\n' "$1" $((rate / 100)) $((rate % 100))
}
