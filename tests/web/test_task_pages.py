"""#/tasks, #/task/ID, #/tasks/new and #/compare: tasks of a real service; what a cluster would tell is invented."""

from __future__ import annotations

import json
import re
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskNews, TaskState
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, Unreloaded, accessible, focused, press_until
from tests.web.conftest import Known
from tests.web.invented import Invented
from tests.web.invented_tasks import WEIGHTS

IS_DRAWN = """() => [...document.querySelectorAll("canvas")].every(one => {
    const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
    return new Set(data).size > 3;
})"""
SPEC = TaskSpec(("python3", "train.py", "--epochs", "5"), name="mnist", output="hdfs:///out/mnist")


def asked(client: InfoClient, name: str, state: TaskState, **news: object) -> Task:
    """A task that has come so far."""
    task = client.submit_task(TaskSpec(("python3", "train.py", name), name=name, output=SPEC.output))
    steps = (TaskState.QUEUED, TaskState.RUNNING, state)
    for step in dict.fromkeys(steps[: steps.index(state) + 1]):
        told = TaskNews(step, node_name="n1", attempt=1, **(news if step is state else {}))  # type: ignore[arg-type]
        task = client.put_task_news(task.task_id, told)
    return task


def token_of(known: Known, name: str, role: Role = Role.USER) -> str:
    return known.client.create_token(name, role)[1]


def row(page: Page, name: str) -> Locator:
    """The row of one task."""
    return page.get_by_role("table", name="Tasks, the newest first").get_by_role("row").filter(has_text=name)


def test_tasks_are_listed_and_change_as_they_run(tabs: Tabs, known: Known) -> None:
    task = asked(known.client, "mnist", TaskState.RUNNING)
    asked(known.client, "unet", TaskState.FAILED, reason="it needed more <memory>", exit_code=137)
    page = tabs.open(known.url, "#/tasks", TOKEN)

    expect(page.get_by_text("2 tasks, 1 not ended.")).to_be_visible()
    expect(row(page, "unet")).to_contain_text("it needed more <memory>")
    with Unreloaded(page):
        known.client.put_task_news(task.task_id, TaskNews(TaskState.SUCCEEDED, exit_code=0))
        expect(row(page, "mnist")).to_contain_text("succeeded")
        known.client.submit_task(SPEC)
        expect(page.get_by_text("3 tasks, 1 not ended.")).to_be_visible()
        expect(page.locator("#live")).to_contain_text("mnist succeeded")


def test_a_task_says_why_it_waits_and_leads_to_its_node(tabs: Tabs, known: Known) -> None:
    asked(known.client, "mnist", TaskState.QUEUED, reason="4 of its array run")
    asked(known.client, "unet", TaskState.RUNNING)
    page = tabs.open(known.url, "#/tasks", TOKEN)
    heads = page.get_by_role("columnheader")

    expect(heads).to_have_text(["Compare", "Task", "State", "Node", "Time", "Owner", "Asked for", "Why"])
    expect(heads.filter(has_text="Time")).to_have_css("text-align", "right")
    expect(row(page, "unet").locator("td.number")).to_have_css("text-align", "right")
    expect(row(page, "mnist").get_by_role("cell").last).to_have_text("4 of its array run")
    row(page, "unet").get_by_role("link", name="n1").click()
    expect(page).to_have_url(re.compile(r"#/node/n1$"))


def test_queued_tasks_say_their_place_when_they_begin_and_what_they_wait_for(
    tabs: Tabs, known: Known, board: Invented
) -> None:
    ids = {name: asked(known.client, name, TaskState.QUEUED).task_id for name in ("second", "unsent")}
    ids["first"] = asked(known.client, "first", TaskState.QUEUED, reason="the same in YARN's words").task_id
    asked(known.client, "unet", TaskState.RUNNING)
    own = replace(board.queues.waiting[0], task_id=ids["first"], waits_for="its turn")
    late = replace(own, task_id=ids["second"], position=2, start=None, no_start="not known: too few have ended")
    board.queues = replace(board.queues, waiting=(own, late))
    calls: list[str] = []
    page = tabs.open(known.url, "#/jobs", TOKEN)
    page.on("request", lambda request: calls.append(request.url) if request.url.endswith("/queue") else None)
    page.clock.install()
    begun = time.monotonic()
    page.evaluate("() => { location.hash = '#/tasks' }")

    why = {name: row(page, name).get_by_role("cell").last for name in ("first", "second", "unsent", "unet")}
    expect(why["first"]).to_have_text("place 1 of 3, begins in 2 to 9 min, waits for its turn")
    expect(why["second"]).to_have_text("place 2 of 3, begin not known, waits for its turn")
    expect(why["unsent"]).to_have_text("")
    expect(why["unet"]).to_have_text("")
    assert 1 <= len(calls) <= 1 + (time.monotonic() - begun) / 5
    known.client.put_task_news(ids["first"], TaskNews(TaskState.RUNNING, reason="", node_name="n1", attempt=1))
    page.clock.run_for(1_000)  # what an event tells is asked for a moment later
    expect(row(page, "first")).to_contain_text("running")
    expect(why["first"]).to_have_text("")


def test_a_link_keeps_the_focus_while_its_row_changes(tabs: Tabs, known: Known) -> None:
    task = asked(known.client, "mnist", TaskState.RUNNING)
    page = tabs.open(known.url, "#/tasks", TOKEN)
    expect(row(page, "mnist")).to_contain_text("running")
    for name in ("mnist", "n1"):
        press_until(page, name)
        reason = f"news for {name}"
        known.client.put_task_news(task.task_id, TaskNews(TaskState.RUNNING, reason=reason, attempt=1))
        expect(row(page, "mnist")).to_contain_text(reason)
        assert focused(page) == name


def test_on_a_phone_a_task_is_a_block_that_shows_all_of_it(tabs: Tabs, known: Known) -> None:
    asked(known.client, "unet", TaskState.FAILED, reason="it needed more memory", exit_code=137)
    page = tabs.open(known.url, "#/tasks", TOKEN)
    page.set_viewport_size({"width": 390, "height": 844})
    block = row(page, "unet")
    expect(block.get_by_text("it needed more memory")).to_be_visible()
    boxes = {name: one.bounding_box() for name, one in _parts(block).items()}
    whole = block.bounding_box()

    assert whole is not None and whole["height"] < 160
    for name, box in boxes.items():
        assert box is not None and box["width"] > 0 and box["x"] + box["width"] <= 390, name
    assert boxes["name"]["y"] < boxes["why"]["y"] < boxes["node"]["y"]  # type: ignore[index]
    expect(page.get_by_role("columnheader", name="Why")).to_have_count(1)
    accessible(page)


def _parts(block: Locator) -> dict[str, Locator]:
    cells = block.get_by_role("cell")
    named = {"name": block.get_by_role("link", name="unet"), "node": block.get_by_role("link", name="n1")}
    return {**named, "box": cells.first, "time": block.locator("td.number"), "why": cells.last}


def test_what_is_searched_for_stands_in_the_address(tabs: Tabs, known: Known) -> None:
    for name in ("mnist", "unet", "resnet"):
        asked(known.client, name, TaskState.SUCCEEDED)
    known.client.submit_task(SPEC)
    page = tabs.open(known.url, "#/tasks", TOKEN)
    press_until(page, "Name, id or program")
    page.keyboard.type("net")
    expect(page.get_by_text("2 tasks, 0 not ended.")).to_be_visible()
    expect(page).to_have_url(re.compile(r"#/tasks\?q=net$"))

    page.goto("/#/tasks?state=not+ended")
    expect(page.get_by_text("1 task, 1 not ended.")).to_be_visible()
    page.goto("/#/tasks?q=nothing")
    expect(page.get_by_text("No task is like that.")).to_be_visible()


def test_a_user_sees_their_own_tasks_and_a_reader_none(tabs: Tabs, known: Known) -> None:
    asked(known.client, "of-the-admin", TaskState.RUNNING)
    known.client.submit_task(SPEC)
    page = tabs.open(known.url, "#/tasks", token_of(known, "maria"))
    expect(page.get_by_text("There is no task.")).to_be_visible()

    page = tabs.open(known.url, "#/tasks", known.viewer)
    expect(page.locator("main")).to_contain_text("Tasks are shown to tokens of role user")
    expect(page.get_by_role("link", name="New task")).to_have_count(0)


def test_one_task_shows_its_log_as_a_terminal_does_and_follows_it(tabs: Tabs, known: Known, board: Invented) -> None:
    task = asked(known.client, "mnist", TaskState.RUNNING)
    page = tabs.open(known.url, f"#/task/{task.task_id}", TOKEN)
    log = page.get_by_role("region", name="Log", exact=True)

    expect(log).to_contain_text("<b>bold</b> is text")
    expect(log).to_contain_text("epoch 1: 100 %")
    expect(log).not_to_contain_text("50 %")
    expect(log.locator(".ansi-1")).to_have_text("warning")
    with Unreloaded(page):
        board.tasks.log += "a new line\n"
        expect(log).to_contain_text("a new line")
        known.client.put_task_news(task.task_id, TaskNews(TaskState.FAILED, reason="exit code 3", exit_code=3))
        expect(page.get_by_text("This is all of it.")).to_be_visible()
        expect(page.locator("main")).to_contain_text("exit code 3")


def test_a_log_is_searched_by_keyboard_and_a_link_leads_to_a_line(tabs: Tabs, known: Known, board: Invented) -> None:
    # What is typed first is in every line, so that 150 are only told once all of it was searched for.
    board.tasks.log = "".join(f"line {number} {'odd' if number % 2 else 'even od'}\n" for number in range(1, 301))
    task = asked(known.client, "mnist", TaskState.SUCCEEDED)
    page = tabs.open(known.url, f"#/task/{task.task_id}", TOKEN)
    expect(page.get_by_role("region", name="Log", exact=True)).to_contain_text("line 300")
    press_until(page, "Search")
    page.keyboard.type("odd")
    expect(page.get_by_text("150 lines")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_text("150 lines, at 1")).to_be_visible()
    expect(page.locator(".log-here")).to_contain_text("line 1 odd")

    page.goto(f"/#/task/{task.task_id}?stream=stdout&attempt=1&line=40")
    expect(page.locator(".log-wanted")).to_contain_text("line 40 even")
    expect(page.locator(".log-wanted")).to_be_in_viewport()


def test_curves_say_in_words_what_they_show(tabs: Tabs, known: Known) -> None:
    task = asked(known.client, "mnist", TaskState.RUNNING)
    page = tabs.open(known.url, f"#/task/{task.task_id}", TOKEN)
    curves = page.get_by_role("region", name="Curves")

    expect(curves.get_by_role("figure").filter(has_text="loss")).to_contain_text("to 2)")
    expect(curves.get_by_role("figure").filter(has_text="memory_bytes")).to_contain_text("MB")
    expect(curves.get_by_role("figure").filter(has_text="received_bytes_per_second")).to_contain_text("kB/s")
    expect(curves.locator("canvas")).to_have_count(5)
    page.wait_for_function(IS_DRAWN)


def test_why_it_runs_there_and_what_it_left(tabs: Tabs, known: Known) -> None:
    task = asked(known.client, "mnist", TaskState.SUCCEEDED, exit_code=0)
    page = tabs.open(known.url, f"#/task/{task.task_id}", TOKEN)
    page.locator("summary").filter(has_text="Why there").click()
    expect(page.locator("main")).to_contain_text("1 of 2 nodes may run it, of which 1 had room.")
    expect(page.get_by_role("table", name="The nodes as they were then")).to_contain_text("4096 MB")

    with page.expect_download() as begun:
        page.get_by_role("button", name="Save model/weights.bin").click()
    assert begun.value.suggested_filename == "weights.bin"
    assert Path(begun.value.path()).read_bytes() == WEIGHTS


def test_a_task_is_stopped_run_again_and_removed_by_keyboard(tabs: Tabs, known: Known) -> None:
    maria = token_of(known, "maria")
    client = InfoClient(known.url, maria)
    task = client.submit_task(SPEC)
    page = tabs.open(known.url, f"#/task/{task.task_id}", maria)
    expect(page.get_by_role("heading", level=1)).to_have_text("mnist")
    press_until(page, "Stop")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Stop this task?")).to_be_visible()
    page.keyboard.press("Escape")
    assert client.task(task.task_id).state is TaskState.QUEUED

    press_until(page, "Stop")
    page.keyboard.press("Enter")
    press_until(page, "Stop it")
    page.keyboard.press("Enter")
    expect(page.locator(".headline")).to_contain_text("stopped")
    # The event may come before the answer, and until that is there no button does anything.
    expect(page.locator(".task-head .actions")).not_to_have_attribute("aria-busy", "true")
    press_until(page, "Run again")
    page.keyboard.press("Enter")
    expect(page.locator(".headline")).to_contain_text("queued")
    (again, first) = client.tasks()
    assert again.again_of == first.task_id and again.spec == first.spec

    page.goto(f"/#/task/{first.task_id}")
    press_until(page, "Remove")
    page.keyboard.press("Enter")
    press_until(page, "Remove it")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 task, 1 not ended.")).to_be_visible()


def test_a_viewer_cannot_open_a_task_and_is_told_so(tabs: Tabs, known: Known) -> None:
    task = known.client.submit_task(SPEC)
    page = tabs.open(known.url, f"#/task/{task.task_id}", token_of(known, "paul"))
    tabs.expect(page, r"status of 404")

    expect(page.get_by_role("alert").filter(has_text=task.task_id)).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()


def test_a_new_task_is_asked_for_by_keyboard_with_a_folder(tabs: Tabs, known: Known, tmp_path: Path) -> None:
    folder = tmp_path / "src"
    (folder / "deep").mkdir(parents=True)
    (folder / "train.py").write_text("print('training')\n")
    long = "n" * 120 + ".txt"
    (folder / "deep" / long).write_bytes(b"\0" * 700)
    maria = token_of(known, "maria")
    page = tabs.open(known.url, "#/tasks/new", maria)
    press_until(page, "Program and arguments (required)")
    page.keyboard.type("python3 train.py --text 'two words'")
    page.get_by_label("Folder").set_input_files(folder)
    press_until(page, "Memory in MB")
    page.keyboard.type("600")
    press_until(page, "More")
    page.keyboard.press("Enter")
    press_until(page, "Variables")
    page.keyboard.type("SEED=1\nWORDS=a = b")
    press_until(page, "Ask for it")
    page.keyboard.press("Enter")
    expect(page.locator(".headline")).to_contain_text("queued")

    (task,) = InfoClient(known.url, maria).tasks()
    assert task.spec.argv == ("python3", "train.py", "--text", "two words")
    assert (task.spec.memory_mb, task.spec.variables) == (600, {"SEED": "1", "WORDS": "a = b"})
    assert task.spec.files is not None
    InfoClient(known.url, maria).get_files(task.spec.files, tmp_path / "sent.tar")
    with tarfile.open(tmp_path / "sent.tar") as archive:
        found = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    assert found == {"train.py": b"print('training')\n", f"deep/{long}": b"\0" * 700}


def test_whether_a_task_may_move_is_chosen_and_what_lacks_is_told_beside_it(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/tasks/new", TOKEN)
    tabs.expect(page, r"status of 422")
    page.get_by_label("Program and arguments").fill("python3 train.py")
    page.locator("summary").filter(has_text="More").click()
    page.get_by_label("Move", exact=True).select_option("yes")
    page.get_by_role("button", name="Ask for it").click()
    expect(page.get_by_text("a task can move only with a program and a checkpoint")).to_be_visible()

    page.get_by_label("Program", exact=True).fill("net")
    page.get_by_label("Checkpoint").fill("/checkpoints/net")
    page.get_by_role("button", name="Ask for it").click()
    expect(page.locator(".headline")).to_contain_text("queued")
    page.locator("summary").filter(has_text="What was asked for").click()
    expect(page.get_by_text("to a node that is faster, when one has room")).to_be_visible()

    (task,) = known.client.tasks()
    assert task.spec.move


def test_gpus_are_asked_for_and_shown_with_what_they_must_be(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/tasks/new", TOKEN)
    page.get_by_label("Program and arguments").fill("python3 train.py")
    page.locator("summary").filter(has_text="More").click()
    for label, text in (("GPUs", "2"), ("GPU model", "T4"), ("GPU memory in MB", "16384")):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Ask for it").click()
    expect(page.locator(".headline")).to_contain_text("queued")
    expect(page.get_by_text("2 (T4, 16384 MB)")).to_be_visible()

    (task,) = known.client.tasks()
    assert (task.spec.gpus, task.spec.gpu_model, task.spec.gpu_memory_mb) == (2, "T4", 16384)
    assert task.spec.gpu_capability is None


def test_what_the_service_refuses_stands_beside_its_field_also_within_a_closed_part(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/tasks/new", TOKEN)
    tabs.expect(page, r"status of 422")
    page.get_by_label("Program and arguments").fill("python3 train.py")
    page.locator("summary").filter(has_text="More").click()
    page.get_by_label("Queue").fill("no queue!")
    page.locator("summary").filter(has_text="More").click()
    page.get_by_role("button", name="Ask for it").click()

    expect(page.get_by_label("Queue")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Queue")).to_be_focused()
    assert known.client.tasks() == []


def test_tasks_are_compared_by_their_curves_and_by_what_differs(tabs: Tabs, known: Known) -> None:
    for name in ("slow", "fast"):
        asked(known.client, name, TaskState.SUCCEEDED)
    page = tabs.open(known.url, "#/tasks", TOKEN)
    for name in ("slow", "fast"):
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("link", name="Compare 2 tasks").click()

    expect(page.get_by_role("table", name="The tasks and their last values").get_by_role("row")).to_have_count(3)
    expect(page.get_by_role("figure").filter(has_text="loss")).to_contain_text("fast")
    expect(page.get_by_role("table", name="What was asked for otherwise")).to_contain_text("python3 train.py slow")


TERMINAL = """async texts => {
    const { Terminal, textOf } = await import("/web/terminal.js");
    const terminal = new Terminal(5);
    for (const text of texts) terminal.write(text);
    return [terminal.lines.map(textOf), terminal.lines.flatMap(line => line.runs.map(run => run.look)).filter(Boolean)];
}"""


@pytest.mark.parametrize(
    ("texts", "lines", "looks"),
    [
        (["one\ntwo"], ["one", "two"], []),
        (["one\r\ntwo\r\n"], ["one", "two", ""], []),
        (["10 %\r", "100 %\n"], ["100 %", ""], []),
        (["abcdef\rXY"], ["XYcdef"], []),
        (["abc\r\x1b[Kd"], ["d"], []),
        (["\x1b[1;31mred\x1b[0m plain"], ["red plain"], ["ansi-1 ansi-bold"]),
        (["cut \x1b[3", "2mgreen"], ["cut green"], ["ansi-2"]),
        (["\x1b[38;5;9mhigh\x1b[38;2;1;2;3mtrue"], ["hightrue"], ["ansi-9"]),
        (["one\ntwo\n\x1b[2AONE\x1b[2B"], ["ONE", "two", ""], []),
        (["\x1b]0;a title\x07\x1b[?25lshown"], ["shown"], []),
        (["ab\b\bX"], ["Xb"], []),
        (["\x1b[31ma\x1b[0m\r\x1b[Cb"], ["ab"], ["ansi-1"]),
        (["".join(f"{number}\n" for number in range(9))], ["5", "6", "7", "8", ""], []),
    ],
)
def test_a_terminal_shows_what_a_terminal_shows(
    tabs: Tabs, known: Known, texts: list[str], lines: list[str], looks: list[str]
) -> None:
    page = tabs.open(known.url)

    assert page.evaluate(TERMINAL, texts) == [lines, looks], json.dumps(texts)


def test_a_line_of_very_many_looks_goes_on_in_the_last_of_some(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    text = "".join(f"\x1b[3{number % 8}mx" for number in range(30_000))

    lines, looks = page.evaluate(TERMINAL, [text])
    assert (lines, len(looks)) == (["x" * 20_000], 500)
