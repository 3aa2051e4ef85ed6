#!/bin/sh
# Steps a second of a short loop, the best of five looks: a start of something does not count, steady load does.
best=0
for _ in 1 2 3 4 5; do
    begun=$(date +%s%N)
    step=0
    while [ "$step" -lt 60000 ]; do step=$((step + 1)); done
    speed=$((60000 * 1000000000 / ($(date +%s%N) - begun)))
    [ "$speed" -gt "$best" ] && best=$speed
    sleep 1
done
echo "$best"
