"""Runs with several members find the parameters that one process alone finds, whoever is lost on the way."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.learning.conftest import Amid, Led, Start, until
from tests.learning.results import EXACT, differ


def test_three_members_of_which_one_is_slow_find_the_same_as_one(led: Led, start: Start, alone: list[float]) -> None:
    members = [start("a", "--pace", "0.002"), start("b", "--pace", "0.0005"), start("c", "--pace", "0.0005")]

    found = [one.wait_for_result() for one in members]

    assert found[0] == found[1] == found[2]
    assert differ(found[0], alone) < EXACT
    samples = {name: one.done.samples for name, one in led.leader.members().items()}
    assert sum(samples.values()) == 4 * 1000
    assert samples["a"] < 0.6 * samples["b"]
    shares = [one.done.share for one in led.leader.members().values()]
    assert sum(one.samples for one in shares) == shares[0].batch == 64
    assert len({(one.since, one.gain, one.is_guess) for one in shares}) == 1
    assert shares[0].since > 0 and not shares[0].is_guess


@pytest.mark.parametrize("victim", [0, 2], ids=["rank 0", "another"])
def test_a_killed_member_costs_no_step(led: Led, start: Start, amid: Amid, alone: list[float], victim: int) -> None:
    members = {name: start(name, *amid.words) for name in "abc"}
    until(lambda: led.steps() > 5)
    lost = members.pop(led.generations[0].members[victim])
    lost.process.kill()
    amid.let_end()

    found = [one.wait_for_result() for one in members.values()]

    assert max(differ(one, alone) for one in found) < EXACT
    assert [len(one.members) for one in led.generations] == [3, 2]


def test_members_that_average_now_and_then_stay_equal_when_one_is_killed(led: Led, start: Start, amid: Amid) -> None:
    members = {name: start(name, *amid.words, "--sync", "local:5") for name in "abc"}
    until(lambda: led.steps() >= 10)
    lost = members.pop(led.generations[0].members[0])
    lost.process.kill()
    amid.let_end()

    found = [one.wait_for_result() for one in members.values()]

    assert found[0] == found[1]
    assert [len(one.members) for one in led.generations] == [3, 2]
    assert led.generations[1].first_step % 16 in (0, 5, 10, 15)
    assert led.steps() == 64


@pytest.mark.parametrize("led", [{"silence_seconds": 15.0}], indirect=True)
def test_a_frozen_member_is_left_out_and_ends_when_it_thaws(
    led: Led, start: Start, amid: Amid, alone: list[float]
) -> None:
    members = {name: start(name, *amid.words) for name in "abc"}
    until(lambda: led.steps() > 5)
    frozen = members.pop(led.generations[0].members[1])
    frozen.process.send_signal(signal.SIGSTOP)
    amid.let_end()

    found = [one.wait_for_result() for one in members.values()]
    frozen.process.send_signal(signal.SIGCONT)

    assert max(differ(one, alone) for one in found) < EXACT
    assert frozen.process.wait(60) == 3
    assert "takes part no more: silent for" in frozen.read_output()


@pytest.mark.parametrize("led", [{"most": 2}], indirect=True)
def test_who_comes_later_gets_the_state_when_there_is_room(
    led: Led, start: Start, amid: Amid, alone: list[float]
) -> None:
    members = {name: start(name, *amid.words) for name in "ab"}
    until(lambda: led.steps() > 3)
    late = start("c", *amid.words)
    until(lambda: "c" in led.leader.members())
    members.pop("a").process.kill()
    amid.let_end()

    found = [one.wait_for_result() for one in (*members.values(), late)]

    assert max(differ(one, alone) for one in found) < EXACT
    assert [set(one.members) for one in led.generations] == [{"a", "b"}, {"b", "c"}]
    assert led.generations[1].first_step > 3 and led.generations[1].behind == ("c",)


def test_members_go_on_while_nobody_leads_them_and_after_it(
    led: Led, start: Start, amid: Amid, alone: list[float]
) -> None:
    members = {name: start(name, *amid.words) for name in "abc"}
    until(lambda: led.steps() > 3)
    led.kill()
    before = led.steps()
    led.begin()
    until(lambda: led.steps() > before + 3)
    members.pop("b").process.kill()
    amid.let_end()

    found = [one.wait_for_result() for one in members.values()]

    assert max(differ(one, alone) for one in found) < EXACT
    assert [(one.attempt, len(one.members)) for one in led.generations] == [(1, 3), (2, 2)]


def test_the_store_may_die_before_the_next_generation(led: Led, start: Start, amid: Amid, alone: list[float]) -> None:
    members = {name: start(name, *amid.words) for name in "abc"}
    until(lambda: led.steps() > 3)
    for one in members.values():
        os.kill(one.store(), signal.SIGKILL)
    members.pop("b").process.kill()
    amid.let_end()

    found = [one.wait_for_result() for one in members.values()]

    assert max(differ(one, alone) for one in found) < EXACT


def test_all_killed_go_on_from_the_last_checkpoint(led: Led, start: Start, amid: Amid, alone: list[float]) -> None:
    members = [start(name, *amid.words) for name in "abc"]
    stored = until(lambda: led.leader.checkpoint)
    for one in members:
        one.process.kill()
    amid.let_end()

    found = [one.wait_for_result() for one in [start(name, *amid.words) for name in "def"]]

    assert max(differ(one, alone) for one in found) < EXACT
    assert any(one.from_checkpoint and one.first_step >= stored for one in led.generations[1:])


def test_a_run_that_is_stopped_ends_for_all_after_one_step_and_another_goes_on_from_it(
    led: Led, start: Start, amid: Amid, alone: list[float]
) -> None:
    members = [start(name, *amid.words) for name in "abc"]
    until(lambda: led.steps() > 5)
    led.leader.stop()
    amid.let_end()
    stopped = [one.wait_for_result() for one in members]

    assert stopped[0] == stopped[1] == stopped[2]
    assert led.leader.is_done and led.leader.is_stopped
    steps = led.leader.steps
    assert 5 < steps < 64 and len(led.generations) == 1
    assert all(f"stopped after {steps} steps" in one.read_output() for one in members)

    led.resume()
    found = [one.wait_for_result() for one in [start(name) for name in "def"]]
    assert led.generations[0].first_step == steps
    assert max(differ(one, alone) for one in found) < EXACT
    assert led.leader.is_done and not led.leader.is_stopped


@pytest.mark.parametrize(("sync", "step", "after"), [("every", 7, 7), ("local:5", 6, 10)])
def test_one_program_stops_all_of_them(led: Led, start: Start, sync: str, step: int, after: int) -> None:
    words = ("--pace", "0.001", "--sync", sync)
    members = [start("b", *words, "--stop", str(step)), *(start(name, *words) for name in "ac")]
    found = [one.wait_for_result() for one in members]

    assert found[0] == found[1] == found[2]
    assert (led.leader.steps, led.leader.is_stopped) == (after, True)


@pytest.mark.parametrize("led", [{"most": 2}], indirect=True)
def test_who_waits_when_a_run_is_stopped_has_what_the_others_found(led: Led, start: Start, amid: Amid) -> None:
    members = [start(name, *amid.words) for name in "ab"]
    until(lambda: led.steps() > 3)
    late = start("c")
    until(lambda: "c" in led.leader.members())
    led.leader.stop()
    amid.let_end()

    found = [one.wait_for_result() for one in (*members, late)]
    assert found[0] == found[1] == found[2]
    assert "the run was done before this process could join" in late.read_output()
    assert f"stopped after {led.leader.steps} steps" in late.read_output()


def test_a_stop_that_was_asked_for_is_not_forgotten_by_a_later_attempt(led: Led, start: Start, amid: Amid) -> None:
    members = [start(name, *amid.words) for name in "abc"]
    until(lambda: led.steps() > 1)
    led.kill()
    led.leader.stop()  # recorded, and told to nobody
    led.begin()
    amid.let_end()

    found = [one.wait_for_result() for one in members]
    assert found[0] == found[1] == found[2]
    assert led.leader.is_stopped and led.leader.steps < 64


WRONG = {
    # A member that was very slow in the first steps has no samples by then, and nothing is wrong with its gradient.
    "nan": "the gradient of step 3 is not finite on (a, b|a|b): take a smaller learning rate",
    "no step": "the loop did not call run.step: call it once for each batch of the loop",
}


@pytest.mark.parametrize("led", [{"most": 2}], indirect=True)
@pytest.mark.parametrize(("wrong", "said"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_with_a_program_is_said_and_the_run_can_be_resumed(
    led: Led, start: Start, alone: list[float], wrong: str, said: str
) -> None:
    members = [start(name, "--break", wrong) for name in "ab"]
    statuses = [one.process.wait(60) for one in members]

    assert statuses == [3, 3]
    assert any(re.search(said, one.read_output()) for one in members)
    assert differ(start("c").wait_for_result(), alone) < EXACT


OTHERS = {
    "--break=another network": "the state is of a run with numbers 257, and this process has 513",
    "--batch=65": "the state is of a run with batch 64, and this process has 65",
    "--sync=often": "members cannot average by 'often': write every, auto or local:H, H from 1 to 1024",
}


@pytest.mark.parametrize("led", [{"most": 1}], indirect=True)
@pytest.mark.parametrize(("word", "said"), OTHERS.items(), ids=OTHERS)
def test_a_checkpoint_of_another_run_is_refused(led: Led, start: Start, amid: Amid, word: str, said: str) -> None:
    first = start("a", *amid.words)
    until(lambda: led.leader.checkpoint)
    first.process.kill()

    other = start("b", word)

    assert other.process.wait(60) == 3
    assert said in other.read_output()


@pytest.mark.parametrize("led", [{"most": 1}], indirect=True)
def test_who_comes_when_all_is_done_has_what_the_others_found(led: Led, start: Start, alone: list[float]) -> None:
    start("a").wait_for_result()

    late = start("b")

    assert differ(late.wait_for_result(), alone) < EXACT
    assert "the run was done before this process could join" in late.read_output()
