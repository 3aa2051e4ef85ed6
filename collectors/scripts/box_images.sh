#!/bin/sh
# The ids of the images that an operator allows in this node's boxes of Docker, with blanks between.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"
BROKER=${BROKER:-/run/nodewise/boxes.sock}
IMAGES=${IMAGES:-/etc/nodewise/images}

[ -S "$BROKER" ] || no_data "there is no broker of boxes on this node"
[ -e "$IMAGES" ] || no_data "no image is allowed on this node: there is no $IMAGES"
readable "$IMAGES"
awk '
    $1 ~ /^sha256:[0-9a-f]+$/ && length($1) == 71 { printf "%s%s", found++ ? " " : "", $1 }
    END { if (found) print ""; exit !found }
    ' "$IMAGES" || no_data "no image is allowed on this node: $IMAGES names none"
