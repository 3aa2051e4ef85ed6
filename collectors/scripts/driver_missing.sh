#!/bin/sh
# What the CDI files of the node name for its cards of NVIDIA and is not there any more, as after an upgrade: the first.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"
CDI_FOLDERS=${CDI_FOLDERS:-/etc/cdi /var/run/cdi}

files=
for folder in $CDI_FOLDERS; do # what a later one says of a device counts
    found=$(grep -lsE '"kind" *: *"nvidia.com/gpu"' "$folder"/*.json) && files=$found
done
[ -n "$files" ] || no_data "no JSON file in $CDI_FOLDERS describes cards of NVIDIA"

list_named() { # the device files, libraries and folders of a file, by the innermost objects; a hook is no such thing
    tr '\n' ' ' <"$1" | sed 's/[{}]/\n/g' | sed -nE '/"hookName"/d
        s,.*"hostPath" *: *"(/[^"\]*)".*,\1,p; t
        s,.*"path" *: *"(/[^"\]*)".*,\1,p'
}

missing=$(printf '%s\n' "$files" | while IFS= read -r file; do
    list_named "$file" | while IFS= read -r named; do
        [ -e "$named" ] || printf '%s names %s, which is not there\n' "$file" "$named"
    done
done | head -n 1)
printf '%s\n' "${missing:-none}"
