# shellcheck shell=sh
# Sourced after _lib.sh by what counts CPUs: only those that this process may use, as a program started here would.

allowed_cpu_lines() { # the cpuN lines of stat for the CPUs of Cpus_allowed_list, for example 0-1,3
    [ -r "$PROC_ROOT/stat" ] || die "$PROC_ROOT/stat cannot be read"
    awk '
        FILENAME ~ /status$/ && $1 == "Cpus_allowed_list:" {
            ranges = split($2, range, ",")
            for (i = 1; i <= ranges; i++) {
                ends = split(range[i], end, "-")
                for (cpu = end[1]; cpu <= end[ends]; cpu++) allowed["cpu" cpu] = 1
            }
        }
        FILENAME ~ /stat$/ && $1 in allowed
    ' "$PROC_ROOT/self/status" "$PROC_ROOT/stat"
}
