"""The figures with what they must reach, and how readings of several parts become one value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import fmean, median

from bench.asked import Asked, Readings, Values
from bench.info.figures import Figure, quantile

p95 = partial(quantile, share=0.95)
S, MS, TIMES = "s", "ms", "x"


def _ask(
    piece: str,
    key: str,
    text: str,
    unit: str = "",
    *,
    by: Callable[[Values], float] = median,
    most: float | None = None,
    least: float | None = None,
) -> Asked:
    return Asked(Figure(key, piece, text, unit, most=most, least=least), by)


def _steady(batch: int, asked: bool) -> list[Asked]:
    most, least = (1.10, 1.40) if asked else (None, None)
    key = piece = f"steady_{batch}"
    piece = piece.replace("_", "-")
    return [
        _ask(piece, f"{key}_of_bound", f"steady uneven nodes, B = {batch}: epoch / bound", most=most),
        _ask(piece, f"{key}_equal_of_ours", f"steady, B = {batch}: equal shares (DDP) / ours", TIMES, least=least),
        _ask(piece, f"{key}_mxnet_of_ours", f"steady, B = {batch}: MXNet dist_sync / ours", TIMES),
        _ask(piece, f"{key}_noise", f"steady, B = {batch}: equal again / equal (noise)"),
        _ask(piece, f"{key}_bound", f"steady, B = {batch}: bound of an epoch", S),
    ]


def _coordinator(members: int, most: float | None = None) -> list[Asked]:
    key, text = f"coordinator_{members}", f"coordinator, {members} members"
    return [
        _ask("coordinator", f"{key}_step", f"{text}: CPU of a step as long as a member's pause", MS, most=most),
        _ask("coordinator", f"{key}_call", f"{text}: CPU of a call", MS),
        _ask("coordinator", f"{key}_second", f"{text}: CPU of a second of the run", MS),
        _ask("coordinator", f"{key}_tick", f"{text}: longest tick", MS, by=max),
    ]


def _local_reads(batch: int) -> list[Asked]:
    key, text = f"local_reads_{batch}", f"three replicas, 8 uneven nodes, B = {batch}: local reads"
    return [
        _ask("local-reads", key, f"{text}, least of all placements", by=min, least=0.95),
        _ask("local-reads", f"{key}_even", f"{text} of an even sampler, median"),
    ]


ASKED = (
    *_steady(1024, asked=True),
    *_steady(256, asked=False),
    _ask("changing", "changing_of_bound", "load that changes every 30 s: time / bound", most=1.20),
    _ask(
        "changing",
        "changing_ours_of_fixed",
        "changing load: steps, ours / shares fixed at the start",
        TIMES,
        least=1.25,
    ),
    _ask("changing", "changing_ours_of_equal", "changing load: steps, ours / equal", TIMES),
    _ask("changing", "changing_noise", "changing load: steps, equal again / equal (noise)"),
    _ask("slower", "slower_steps", "a node becomes 4 x slower: whole steps until shares fit, most", by=max, most=5),
    _ask("slower", "slower_times", "how many times slower it became, median", TIMES),
    _ask("slower", "faster_steps", "it gets its CPU back: whole steps until shares fit, median"),
    _ask("killed", "killed_pause", "worker killed: until the next step, p95", S, by=p95, most=1.0),
    _ask("killed", "killed_wrong_samples", "worker killed: samples lost or doubled, all runs", by=sum, most=0),
    _ask("killed", "killed_lost", "worker killed: work lost, median", S),
    _ask("killed", "killed_torchrun_epoch", "torchrun, checkpoint each epoch: work lost, median", S),
    _ask("killed", "killed_torchrun_epoch_samples", "torchrun, checkpoint each epoch: samples computed again, median"),
    _ask("killed", "killed_torchrun_50", "torchrun, checkpoint every 50 steps: work lost, median", S),
    _ask("killed", "killed_torchrun_50_samples", "torchrun, checkpoint every 50 steps: samples computed again, median"),
    _ask("killed", "killed_ratio_epoch", "work lost, torchrun with a checkpoint each epoch / ours", TIMES, least=10),
    _ask("killed", "killed_ratio_50", "work lost, torchrun with a checkpoint every 50 steps / ours", TIMES, least=10),
    _ask("frozen", "frozen_pause", "worker frozen: until the next step, most", S, by=max, most=6.0),
    _ask("frozen", "frozen_wrong_samples", "worker frozen: samples lost or doubled, all runs", by=sum, most=0),
    _ask("frozen", "frozen_torchrun", "torchrun, a node frozen: work lost, median", S),
    _ask("master", "master_lost", "master killed: longest step after it less longest before, median", S, most=0.05),
    _ask("master", "store_pause", "stores and a member killed: until the next step, most", S, by=max, most=1.0),
    _ask("rank-0", "rank_0_pause", "rank 0 killed: until the next step, most", S, by=max, most=1.0),
    _ask("all", "all_lost", "all killed: work done again, most", S, by=max, most=60.0),
    _ask("scaling", "scaling_2", "2 members of 0.2 CPU: samples/s / (2 x one alone)"),
    _ask("scaling", "scaling_4", "4 members of 0.2 CPU: samples/s / (4 x one alone)", least=0.85),
    _ask("scaling", "scaling_8", "8 members of 0.2 CPU: samples/s / (8 x one alone)"),
    *(
        _ask(
            "scaling",
            f"scaling_{count}_of_ddp",
            f"members of 0.2 CPU, {count}: samples/s, ours / DDP",
            TIMES,
            least=1.0,
        )
        for count in (1, 2, 4, 8)
    ),
    _ask("equal-nodes", "equal_nodes", "equal nodes: steps/s, ours / DDP", least=0.97),
    _ask("equal-nodes", "equal_nodes_noise", "equal nodes: DDP again / DDP (noise)"),
    *_coordinator(8),
    *_coordinator(64),
    *_coordinator(256, most=5.0),
    *_local_reads(1024),
    *_local_reads(256),
    *(
        _ask("thin", f"thin_{name}", f"20 Mbit/s, 50 ms: time to a loss of 0.8, {text}", S)
        for name, text in (("every", "every step"), ("local_16", "local:16"), ("auto", "auto"), ("ddp", "DDP"))
    ),
    _ask("thin", "thin_every_of_local_16", "thin link: time, every step / local:16", TIMES, least=3.0),
    _ask("thin", "thin_every_of_auto", "thin link: time, every step / auto", TIMES),
    _ask("thin", "thin_every_of_ddp", "thin link: time, every step / DDP", TIMES),
    *(
        _ask("pictures", f"pictures_{name}", f"AlexNet on two uneven nodes: pictures a second, {text}")
        for name, text in (("every", "every step"), ("local_16", "local:16"), ("mxnet", "MXNet dist_sync"))
    ),
    _ask("pictures", "pictures_every_of_mxnet", "AlexNet: pictures a second, every step / dist_sync", TIMES),
    _ask("pictures", "pictures_local_16_of_mxnet", "AlexNet: pictures a second, local:16 / dist_sync", TIMES),
    _ask("pictures", "pictures_seconds", "AlexNet, 24 epochs of 320 of 400 pictures by local:16: the whole run", S),
    _ask("pictures", "pictures_accuracy", "AlexNet after that: the share of the other pictures that it knows"),
    _ask("accuracy", "accuracy", "accuracy after three losses, mean", by=fmean),
    _ask("accuracy", "accuracy_alone", "accuracy of one process, mean", by=fmean),
    _ask("accuracy", "accuracy_outside", "runs with losses outside the range of one process", by=sum, most=0),
)


def derive(readings: Readings) -> dict[str, Values]:
    """With the figures that follow from others: ratios of medians, and accuracies outside a range."""
    found = dict(readings)
    if ours := readings.get("killed_lost"):
        for name in ("epoch", "50"):
            if theirs := readings.get(f"killed_torchrun_{name}"):
                found[f"killed_ratio_{name}"] = [median(theirs) / max(median(ours), 1e-3)]
    if (alone := readings.get("accuracy_alone")) and (ours := readings.get("accuracy")):
        found["accuracy_outside"] = [sum(not min(alone) <= one <= max(alone) for one in ours)]
    return found
