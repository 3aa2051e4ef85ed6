#!/usr/bin/env bash
# Runs in a container of YARN: makes steps, notes in a folder when each is done, and becomes a program.
# on_node.sh FOLDER [step NAME COUNT WORD...]... WORD...
set -euo pipefail
out=$1
shift
note() { echo "$EPOCHREALTIME" > "$out/$1"; }
exec 2> "$out/stderr"
echo "$CONTAINER_ID" > "$out/container"
note begun
while [ "$1" = step ]; do
  name=$2 count=$3
  shift 3
  "${@:1:count}" >&2
  shift "$count"
  note "$name"
done
exec "$@"
