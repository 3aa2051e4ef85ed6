#!/bin/sh
# Each GPU of NVIDIA by itself, as JSON: index, model, memory, use, compute capability, processes on it.
# shellcheck source=_lib.sh
. "${LIB:-${0%/*}/_lib.sh}"
NVIDIA_SMI=${NVIDIA_SMI:-nvidia-smi}

command -v "$NVIDIA_SMI" >/dev/null || no_data "there is no $NVIDIA_SMI on this node"

ask_cards() {
    "$NVIDIA_SMI" "--query-gpu=index,uuid,name,memory.total,memory.free,utilization.gpu$1" \
        --format=csv,noheader,nounits
}

status=0
cards=$(ask_cards ,compute_cap) || status=$?
case $cards in
    *compute_cap*) # a driver older than 510 does not know the field
        status=0
        cards=$(ask_cards "") || status=$? ;;
esac
case $status in
    0) [ -n "$cards" ] || no_data "$NVIDIA_SMI lists no GPU" ;;
    6 | 9 | 12) no_data "$NVIDIA_SMI finds no GPU, no driver or no library of it: $cards" ;;
    *) die "$NVIDIA_SMI failed with $status: $cards" ;;
esac
processes=$("$NVIDIA_SMI" --query-compute-apps=gpu_uuid --format=csv,noheader) || processes=
printf '%s\n' "$processes" "$cards" | awk -F ', ' '
    function number(text, factor) { return text ~ /^[0-9]+$/ ? sprintf("%.0f", text * factor) : "null" }
    function ratio(text) { return text ~ /^[0-9]+$/ ? sprintf("%.2f", text / 100) : "null" }
    function quoted(text) { gsub(/["\\]/, "", text); return "\"" text "\"" }
    NF == 1 { on[$1]++ }
    NF == 6 || NF == 7 {
        line = "{\"index\": " number($1, 1) ", \"model\": " quoted($3) ", \"memory_total_bytes\": " number($4, 1048576)
        line = line ", \"memory_free_bytes\": " number($5, 1048576) ", \"utilisation_ratio\": " ratio($6)
        line = line ", \"compute_capability\": " quoted($7) ", \"processes\": " on[$2] + 0 "}"
        all = all (all == "" ? "" : ", ") line
    }
    END { if (all == "") exit 1; print "[" all "]" }' || no_data "$NVIDIA_SMI lists no GPU"
