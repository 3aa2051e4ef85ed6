#!/bin/sh
# What the CPUs are: physical cores, their mean clock now, and their model.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"

readable "$PROC_ROOT/cpuinfo"
clocks= # where cpuinfo tells no MHz, as on ARM, each CPU has a file in kHz
for file in "$SYS_ROOT"/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq; do
    if read -r kilohertz <"$file"; then clocks="$clocks $kilohertz"; fi 2>/dev/null
done
awk -F '[\t ]*: ' -v clocks="$clocks" '
    $1 == "physical id" { package = $2 }
    $1 == "core id" && !((package, $2) in core) { core[package, $2] = 1; cores++ }
    $1 == "cpu MHz" { hertz += $2 * 1000000; clocked++ }
    $1 == "model name" { model = $2 }
    END {
        if (!clocked) {
            clocked = split(clocks, kilohertz, " ")
            for (i = 1; i <= clocked; i++) hertz += kilohertz[i] * 1000
        }
        if (cores) print "cpu_core_count", cores
        if (hertz) printf "cpu_frequency_hertz %.0f\n", hertz / clocked
        if (model != "") print "cpu_model", model
        exit !(cores || hertz || model != "")
    }' "$PROC_ROOT/cpuinfo" || no_data "$PROC_ROOT/cpuinfo names no core, clock or model"
