#!/bin/sh
# A digest of the node's driver of NVIDIA: of the CDI specification of its files, which the argument print prints.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"
NVIDIA_CTK=${NVIDIA_CTK:-nvidia-ctk} LDCONFIG=${LDCONFIG:-/sbin/ldconfig} DEV_ROOT=${DEV_ROOT:-/dev}

list_files() { # as CDI calls them: libraries of this machine's own kind, as the linker finds them, and device files
    case $(uname -m) in x86_64) kind=x86-64 ;; aarch64) kind=AArch64 ;; *) kind= ;; esac
    names='lib(cuda|cudadebugger|nvcuvid|nvoptix|nvidia-[a-z0-9-]+|EGL_nvidia|GLX_nvidia)[.]so[.][0-9.]+'
    "$LDCONFIG" -p 2>/dev/null | sed -nE "s,^[[:space:]]*($names) .*$kind.* => ([A-Za-z0-9/._+-]+)$,\1 \3,p" | sort |
        while read -r name file; do
            printf 'containerPath %s %s/%s\n' "$(readlink -f "$file")" "$(readlink -f "${file%/*}")" "$name"
        done
    for device in "$DEV_ROOT"/nvidia*; do
        [ ! -c "$device" ] || printf 'path %s /dev/%s\n' "$device" "${device##*/}"
    done
}

describe() { # fails where there is no card or no library
    list_files | awk '
        function join(all, one) { return all (all == "" ? "" : ",\n  ") one }
        function card(name, of) { return "{\"name\": \"" name "\", \"containerEdits\": {\"deviceNodes\": [" of "]}}" }
        /libnvidia-container/ || seen[$3]++ { next } # a tool, and what the linker lists twice
        { one = "{\"hostPath\": \"" $2 "\", \"" $1 "\": \"" $3 "\""; node = one "}" }
        $1 == "containerPath" { mounts = join(mounts, one ", \"options\": [\"ro\", \"bind\"]}"); next }
        $3 ~ /^\/dev\/nvidia[0-9]+$/ { all = join(all, node); cards = join(cards, card(substr($3, 12), node)); next }
        { common = join(common, node) }
        END { if (cards == "" || mounts == "") exit 1
            print "{\"cdiVersion\": \"0.5.0\", \"kind\": \"nvidia.com/gpu\", \"devices\": ["
            print "  " join(cards, card("all", all)) "\n], \"containerEdits\": {\"deviceNodes\": ["
            print "  " common "\n], \"mounts\": [\n  " mounts "\n]}}"
        }'
}

if command -v "$NVIDIA_CTK" >/dev/null; then
    said=$("$NVIDIA_CTK" cdi generate --format=json) || die "$NVIDIA_CTK cannot describe the driver"
fi
[ -n "${said:=$(describe)}" ] || no_data "neither $NVIDIA_CTK nor libraries and device files tell of a driver of NVIDIA"
[ "${1:-}" != print ] || { printf '%s\n' "$said" && exit; }
printf '%s\n' "$said" | sha256sum | awk '{ print "driver_digest", $1 }'
