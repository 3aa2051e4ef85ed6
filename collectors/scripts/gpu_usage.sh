#!/bin/sh
# The GPUs of NVIDIA: how many, their memory, their use and their software.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"
NVIDIA_SMI=${NVIDIA_SMI:-nvidia-smi}

command -v "$NVIDIA_SMI" >/dev/null || no_data "there is no $NVIDIA_SMI on this node"
status=0
cards=$("$NVIDIA_SMI" --query-gpu=name,driver_version,memory.total,memory.used,utilization.gpu \
    --format=csv,noheader,nounits) || status=$?
case $status in
    0) [ -n "$cards" ] || no_data "$NVIDIA_SMI lists no GPU" ;;
    6 | 9 | 12) no_data "$NVIDIA_SMI finds no GPU, no driver or no library of it: $cards" ;;
    *) die "$NVIDIA_SMI failed with $status: $cards" ;;
esac
# Only the banner tells the version of CUDA; new drivers write "CUDA UMD Version".
banner=$("$NVIDIA_SMI") || banner=
printf '%s\n' "$banner" "$cards" | awk -F ', ' '
    match($0, /CUDA (UMD )?Version: *[0-9.]+/) {
        cuda = substr($0, RSTART, RLENGTH)
        sub(/.* /, "", cuda)
    }
    NF == 5 {
        cards++
        if (!model[$1]++) models = models (models == "" ? "" : ", ") $1
        driver = $2
        for (i = 3; i <= 5; i++) if ($i ~ /^[0-9]+$/) { sum[i] += $i; told[i]++ }
    }
    END {
        if (!cards) exit 1
        print "gpu_count", cards
        print "gpu_model", models
        print "gpu_driver_version", driver
        if (cuda != "") print "gpu_cuda_version", cuda
        # A sum without one of the cards would be a wrong one, so a value that not all of them tell is left out.
        if (told[3] == cards) printf "gpu_memory_total_bytes %.0f\n", sum[3] * 1048576
        if (told[4] == cards) printf "gpu_memory_used_bytes %.0f\n", sum[4] * 1048576
        if (told[5] == cards) printf "gpu_utilisation_ratio %.4f\n", sum[5] / cards / 100
    }' || no_data "$NVIDIA_SMI lists no GPU"
