#!/bin/sh
# What programs that were built elsewhere need: kind and features of the processors, and the C library.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/cpuinfo"
printf 'cpu_architecture %s\n' "$(uname -m)"
# The first processor speaks for all; ARM calls them Features.
flags=$(awk -F '[\t ]*: ' '$1 == "flags" || $1 == "Features" { print $2; exit }' "$PROC_ROOT/cpuinfo")
[ -z "$flags" ] || printf 'cpu_flags %s\n' "$flags"
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || libc= # musl has no such name
[ -z "$libc" ] || printf 'libc_version %s\n' "${libc#glibc }"
