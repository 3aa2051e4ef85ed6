#!/bin/sh
# Rate at which the disk of a directory is read: disk_sequential_read_bytes_per_second.sh [DIRECTORY], default STATE_DIR.
# STATE_DIR is seldom on the disk that holds the node's data: name their directory, for HDFS one that its DataNode
# stores blocks in. 4 MiB of an own file there are read past the page cache, which would else answer from memory; a file
# system that cannot do so tells nothing.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"
BYTES=4194304
export LC_ALL=C # so that dd speaks English

directory=${1:-${STATE_DIR:-}}
[ -d "$directory" ] || die "'$directory' is not a directory on this node: name the one where its data lie"
file=$directory/.nodewise_read_rate
{ [ -f "$file" ] && [ ! -h "$file" ]; } || [ ! -e "$file" ] || die "$file is not a plain file: remove it"
# Random bytes, since a disk may not store others as they are.
size=$([ -r "$file" ] && wc -c <"$file") || size=0
if [ "$size" -ne "$BYTES" ]; then
    # Others may write to the directory, too: only a file that this creates is written to, and no link is followed.
    new=$file.${NODE_NAME:-$$}
    said=$( (
        set -C
        rm -f "$new" && dd if=/dev/urandom bs=65536 count=64 conv=fsync >"$new" && mv -f "$new" "$file"
    ) 2>&1) || {
        rm -f "$new"
        die "cannot write $file: $(printf '%s' "$said" | tail -n 1)"
    }
fi

said=$(dd if="$file" of=/dev/null bs=1048576 iflag=direct 2>&1) ||
    no_data "$directory cannot be read past the page cache: $(printf '%s' "$said" | tail -n 1)"
# The last line is "4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.0212 s, 198 MB/s", or with "seconds" for "s".
printf '%s\n' "$said" | awk -v bytes="$BYTES" '
    $2 == "bytes" && match($0, /copied, [0-9.]+(e[-+]?[0-9]+)? s/) {
        split(substr($0, RSTART + 8), word, " ")
        if ($1 == bytes && word[1] > 0) rate = bytes / word[1]
    }
    END { if (!(rate >= 1 && rate < 1e13)) exit 1; printf "%.0f\n", rate }' ||
    no_data "reading $file took no time that makes sense: $(printf '%s' "$said" | tail -n 1)"
