#!/bin/sh
# Parts of environments that YARN keeps on this node, as JSON: {first 16 digits of the SHA-256: bytes}.
# env_cached.sh [FOLDER]...: folders of yarn.nodemanager.local-dirs, else those that a yarn-site.xml names: that of the
# NodeManager that `nodewise cluster up` has started under this node's name, else $YARN_SITE.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"
YARN_SITE=${YARN_SITE:-/etc/hadoop/yarn-site.xml}
own_site() { # of the NodeManager with this node's name, by its command line; other users may write what they like there
    mark=-Dnodewise.daemon=nodemanager@${NODE_NAME:-}
    grep -lsF -- "$mark" "$PROC_ROOT"/[0-9]*/cmdline | while read -r line; do
        # shellcheck disable=SC2015,SC3013,SC3067 # its user's, in its network: dash and BusyBox know -O and -ef, too
        [ -O "$line" ] && { [ ! -e "${line%/*}/ns/net" ] || [ "${line%/*}/ns/net" -ef "$PROC_ROOT/self/ns/net" ]; } || continue
        words=$({ tr '\0' '\n' <"$line"; } 2>/dev/null) || continue # it has ended
        printf '%s\n' "$words" | grep -qxF -- "$mark" || continue
        printf '%s\n' "$words" | tr ':' '\n' | sed -n 's|^\(/.*/conf\)$|\1/yarn-site.xml|p'
    done | head -n 1
}
local_dirs() { # yarn-site.xml -> its local folders, a line each
    tr -d '\n' <"$1" | sed -n 's|.*<name>yarn.nodemanager.local-dirs</name> *<value>\([^<]*\)</value>.*|\1|p' |
        tr ',' '\n' | sed 's|^ *\(file://\)\{0,1\}||; s| *$||'
}

if [ $# -eq 0 ]; then
    site=$(own_site) && site=${site:-$YARN_SITE}
    [ -r "$site" ] || no_data "no NodeManager is known here: name its local folders as arguments"
    set -f && IFS=$NEWLINE # a folder is a line, whatever is in it
    # shellcheck disable=SC2046
    set -- $(local_dirs "$site") && set +f
fi
[ -d "${1:-}/filecache" ] || no_data "no local folder of a NodeManager is here: '${1:-}'"
readable "$1/filecache"
# What is still on its way lies in N_tmp; where a folder has too many entries, YARN takes one more level.
for folder; do
    stat -c '%s %n' -- "$folder"/filecache/*[0-9]/sha256-*.sqfs "$folder"/filecache/*/*[0-9]/sha256-*.sqfs 2>/dev/null || :
done | sort -rn | awk -v most=1000 ' # the largest: a value has a limit
    match($0, /sha256-[0-9a-f]+\.sqfs$/) && RLENGTH == 76 {
        name = substr($0, RSTART + 7, 16)
        if (!seen[name]++ && told < most) all = all (told++ ? ", " : "") "\"" name "\": " $1
    }
    END { print "{" all "}" }'
