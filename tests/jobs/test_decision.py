"""The decision record: everything comes back from the file, and what is not a record is refused in a sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.division.columns import BlockColumns, digest, plan_of, shares_of
from jobs.division.decision import FORMAT, VERSION, Decision
from jobs.errors import JobError
from locality.cost import AccessCost, Rate
from locality.policies import POLICIES
from locality.types import Block, Part, Plan, Terms
from tests.jobs.decisions import decide, make_blocks

COST = AccessCost({"alpha": Rate(120e6, 4)}, {("alpha", "beta"): Rate(42e6, 7)}, {"alpha": "/r1", "gamma": "/r2"})


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_everything_comes_back_from_the_file(name: str) -> None:
    made = decide(name, speeds={"alpha": 3.5}, blocks=make_blocks(11, images=7))

    assert Decision.from_bytes(made.to_bytes(), "decision.json") == made


def test_access_cost_and_epsilon_come_back() -> None:
    made = decide(terms=Terms(COST, 0.1))

    found = Decision.from_bytes(made.to_bytes(), "decision.json").terms

    assert found.epsilon == 0.1
    assert [found.cost.rack(node) for node in ("alpha", "beta", "gamma")] == ["/r1", "/default-rack", "/r2"]
    for reader, holder in (("alpha", "alpha"), ("alpha", "beta"), ("beta", "gamma")):
        assert found.cost.seconds_per_byte(reader, holder) == COST.seconds_per_byte(reader, holder)


def test_the_file_says_to_anybody_what_each_node_got() -> None:
    body = json.loads(decide().to_bytes())

    assert (body["format"], body["version"]) == (FORMAT, VERSION)
    assert [(share["node_name"], share["images"], share["target_images"]) for share in body["shares"]] == [
        ("alpha", 5, 5),
        ("beta", 10, 10),
        ("gamma", 25, 25),
    ]
    assert sum(share["size_bytes"] for share in body["shares"]) == sum(block.size_bytes for block in make_blocks())
    assert body["cost"] is None
    assert body["blocks"]["digest"] == digest(make_blocks())


def test_a_hundred_thousand_blocks_stay_at_some_megabytes() -> None:
    names = [f"worker{number:04}.rack{number % 40}.example.org" for number in range(1000)]
    blocks = [
        Block(
            f"/data/images/img_{i:07}.jpg", 1, 100_000 + i, (names[i % 1000], names[i * 7 % 1000], names[i * 13 % 1000])
        )
        for i in range(100_000)
    ]
    made = decide(weights=dict.fromkeys(names, 1.0), blocks=blocks)

    assert len(made.to_bytes()) < 6e6


def test_the_digest_changes_with_the_blocks_and_not_with_any_order() -> None:
    blocks = make_blocks()

    assert digest(blocks[::-1]) == digest(blocks)
    assert digest([replace(block, replicas=block.replicas[::-1]) for block in blocks]) == digest(blocks)
    for changed in (
        [*blocks[1:]],
        [replace(blocks[0], size_bytes=1), *blocks[1:]],
        [replace(blocks[0], replicas=("alpha",)), *blocks[1:]],
        [replace(blocks[0], items=2), *blocks[1:]],
        [replace(blocks[0], name="/other"), *blocks[1:]],
    ):
        assert digest(changed) != digest(blocks)


NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unique=True, max_size=8)
HOSTS = st.lists(st.sampled_from(["a", "b", "ü", "node 4"]), unique=True)


@given(NAMES, st.data())
def test_any_blocks_and_pieces_come_back_from_their_columns(names: list[str], data: st.DataObject) -> None:
    blocks = [
        Block(name, data.draw(st.integers(0, 9)), data.draw(st.integers(0, 2**50)), tuple(data.draw(HOSTS)))
        for name in names
    ]
    pieces = [Part(block, *_piece(block, data)) for block in blocks if block.items]
    plan = Plan({"a": tuple(pieces), "idle": ()})

    columns = BlockColumns.of(blocks)

    assert columns.blocks() == blocks
    assert plan_of(shares_of(plan, blocks), blocks) == plan


def _piece(block: Block, data: st.DataObject) -> tuple[int, int]:
    first = data.draw(st.integers(0, block.items - 1))
    return first, data.draw(st.integers(1, block.items - first))


def spoilt(change: Any) -> Any:
    def apply(body: dict[str, Any]) -> bytes:
        change(body)
        return json.dumps(body).encode()

    return apply


BAD = {
    "nothing": (lambda _: b"", "not a decision record"),
    "cut off": (lambda body: json.dumps(body).encode()[:-20], "not a decision record"),
    "bytes": (lambda _: b"\xff\xfe\x00", "not a decision record"),
    "another file": (lambda _: b'{"job_id": "x", "nodes": []}', "not a decision record"),
    "a list": (lambda _: b"[1, 2]", "not a decision record"),
    "nested without end": (lambda _: b"[" * 100_000, "not a decision record"),
    "newer": (spoilt(lambda body: body.update(version=VERSION + 1)), "newer nodewise"),
    "a key is missing": (spoilt(lambda body: body.pop("policy")), "policy"),
    "a wrong kind": (spoilt(lambda body: body.update(epsilon="much")), "epsilon"),
    "a size was changed": (spoilt(lambda body: body["blocks"]["sizes_bytes"].__setitem__(3, 1)), "digest"),
    "a column is short": (spoilt(lambda body: body["blocks"]["names"].pop()), "columns of blocks"),
    "a host is missing": (spoilt(lambda body: body["blocks"]["hosts"].pop()), "columns of blocks"),
    "an unknown block": (spoilt(lambda body: body["plan"]["alpha"].append(4000)), "block 4000 of 40"),
    "images no block has": (spoilt(lambda body: body["plan"]["alpha"].append([0, 0, 2])), "000.jpg"),
    "no value that decided": (spoilt(lambda body: body["capabilities"].pop("weight")), "weight"),
    "a node without a value": (spoilt(lambda body: body["capabilities"]["weight"]["nodes"].pop("beta")), "weight"),
    "only zeros": (
        spoilt(lambda body: [found.update(value=0) for found in body["capabilities"]["weight"]["nodes"].values()]),
        "capability of every node is 0",
    ),
    "a speed below zero": (spoilt(lambda body: body["speeds"].update(beta=-1.0)), "speeds"),
    "quality of another kind": (spoilt(lambda body: body.update(quality={"good": 1})), "damaged"),
    "no quality in its place": (spoilt(lambda body: body["quality"].update(bytes_moved=None)), "bytes_moved"),
    "loads of another kind": (spoilt(lambda body: body["quality"].update(loads={"alpha": "all"})), "loads"),
    "an absurd rate": (spoilt(lambda body: body.update(cost={"nodes": 3})), "access cost"),
}


@pytest.mark.parametrize(("spoil", "said"), BAD.values(), ids=BAD)
def test_what_is_no_sound_record_is_refused_in_a_sentence(spoil: Any, said: str) -> None:
    with pytest.raises(JobError, match=r"^/some/decision\.json ") as refusal:
        Decision.from_bytes(spoil(json.loads(decide().to_bytes())), "/some/decision.json")

    assert said in str(refusal.value)
    assert len(str(refusal.value).splitlines()) == 1


def test_keys_of_a_later_time_are_ignored() -> None:
    made = decide()
    body = json.loads(made.to_bytes()) | {"added_later": 1}
    body["quality"]["added_later"] = {"better": True}

    assert Decision.from_bytes(json.dumps(body).encode(), "x") == made


def test_a_share_counts_what_lies_on_the_node_itself() -> None:
    block = Block("/b", 4, 400, ("alpha",))
    plan = Plan({"alpha": (Part(block, 0, 1),), "beta": (Part(block, 1, 3),)})
    made = replace(decide(weights={"alpha": 1.0, "beta": 1.0}, blocks=[block]), plan=plan)

    alpha, beta = made.shares()

    assert (alpha.items, alpha.local_items, alpha.size_bytes, alpha.local_bytes) == (1, 1, 100, 100)
    assert (beta.items, beta.local_items, beta.size_bytes, beta.local_bytes) == (3, 0, 300, 0)
    assert (alpha.target_items, beta.target_items) == (2, 2)
