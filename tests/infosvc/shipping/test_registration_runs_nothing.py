"""Whoever may only speak REST, even as admin, can start no code that an operator has not put on the node."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infosvc.wire.records import Outcome, Producer, Slot, Wanted

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served
    from tests.infosvc.shipping.conftest import Hand

pytestmark = pytest.mark.timeout(900)  # on a busy machine each start of an agent takes many seconds

Eventually = Callable[[Callable[[], bool]], None]

HOST = "127.0.77.11"
PLANT = """\
printf '#!/bin/sh\\ntouch %s\\n' "$1" > "$STATE_DIR/evil.sh"
chmod 755 "$STATE_DIR/evil.sh"
echo 1
"""


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file that appears when any of the tricks works."""
    return tmp_path / "canary"


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """A directory from which the operator lets programs run, with a link that leads out of it."""
    directory = tmp_path / "allowed"
    directory.mkdir(mode=0o755)
    (directory / "link").symlink_to("/usr/bin/touch")
    (directory / "open.sh").write_text('#!/bin/sh\ntouch "$1"\n')
    (directory / "open.sh").chmod(0o777)
    return directory


@pytest.fixture
def node(
    hand: Hand, served: Served, agents: Path, allowed: Path, canary: Path, tmp_path: Path, eventually: Eventually
) -> Iterator[Path]:
    """An enrolled node on which two scripts of the operator have run: `touch.sh` makes the file it is told, and
    `plant.sh` writes a program where it may. Its directory."""
    scripts = tmp_path / "own" / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "touch.sh").write_text(': > "$1"\necho 1\n')
    (scripts / "plant.sh").write_text(PLANT)
    done = hand.add(HOST, "--no-start", "--files", str(tmp_path / "own"), "--allow", str(allowed))
    assert done.exit_code == 0, done.output
    run(served, "touch", f"scripts/touch.sh {tmp_path}/control")
    run(served, "plant", f"scripts/plant.sh {canary}")
    eventually(lambda: (tmp_path / "control").exists() and (agents / HOST / "state" / "plant" / "evil.sh").exists())
    yield agents / HOST


def run(served: Served, name: str, cmd: str, sha256: str | None = None) -> None:
    """Register and start, by REST alone."""
    served.client.put_producer(Producer(name, cmd, 1, sha256=sha256))
    served.client.put_slot(HOST, name, running=True)


def refused_commands(node: Path, allowed: Path, canary: Path) -> list[str]:
    """Commands of which none may even start."""
    pid = (node / "agent.pid").read_text().strip()
    python = f'-c \'open("{canary}", "w")\''
    shell = f"-c 'touch {canary}'"
    return [
        f"/usr/bin/touch {canary}",
        f"/bin/sh {shell}",
        f"sh {shell}",
        f"touch {canary}",
        f"env touch {canary}",
        f"LANG=C touch {canary}",
        f"{sys.executable} {python}",
        f"python3 {python}",
        f"../../../../../../../../usr/bin/touch {canary}",
        f"scripts/../../../../../../../../usr/bin/touch {canary}",
        f"scripts/./touch.sh {canary}",
        f"./scripts/touch.sh {canary}",
        f"scripts//touch.sh {canary}",
        f"{node}/current/scripts/touch.sh {canary}",
        f"scripts/link.sh {canary}",
        f"scripts/load_1m.sh {canary}",
        f"{node}/state/plant/evil.sh",
        "../state/plant/evil.sh",
        "state/plant/evil.sh",
        f"/proc/{pid}/root/usr/bin/touch {canary}",
        f"/proc/{pid}/cwd/usr/bin/touch {canary}",
        f"/proc/{pid}/exe {python}",
        f"/proc/self/exe {python}",
        f"/proc/self/root/bin/sh {shell}",
        f"/proc/thread-self/root/bin/sh {shell}",
        *(f"/proc/self/fd/{number} {python}" for number in range(3, 12)),
        f"/dev/fd/3 {shell}",
        f"/dev/stdin {shell}",
        f"/lib64/ld-linux-x86-64.so.2 /usr/bin/touch {canary}",
        f"{allowed}/link {canary}",
        f"{allowed}/open.sh {canary}",
        f"{allowed}/../../../../../../usr/bin/touch {canary}",
        f"scripts/touch.sh; touch {canary}",
        f"scripts/touch.sh;touch {canary}",
        f"'scripts/touch.sh {canary}'",
        f"$(touch {canary})",
        f"`touch {canary}`",
        f"|touch {canary}",
        f"'' touch {canary} ",
        "manifest.json",
        "token",
        "../settings.json",
    ]


def harmless_commands(canary: Path) -> list[str]:
    """Programs of the operator with arguments that would start others, if anybody read them as commands."""
    tricks = [
        f"$(touch {canary})",
        f"`touch {canary}`",
        f"; touch {canary}",
        f"\n touch {canary}",
        f"'; touch {canary} #",
    ]
    quoted = ['"' + trick.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`") + '"' for trick in tricks]
    return [
        *(f"scripts/disk_space.sh {trick}" for trick in quoted),
        *(f"processors/perf_even.py {trick}" for trick in quoted),
        f"scripts/disk_space.sh / && touch {canary}",
        f"scripts/disk_space.sh / > {canary}",
        f'processors/perf_even.py -c \'open("{canary}", "w")\'',
        f"agent.pyz --settings {canary}",
        "scripts/_lib.sh",
    ]


def test_registering_starts_nothing_new(
    node: Path, served: Served, allowed: Path, canary: Path, eventually: Eventually
) -> None:
    # Not even somebody who can write to the pushed directory gets his program started under a name of it.
    (node / "current" / "scripts" / "link.sh").symlink_to(node / "state" / "plant" / "evil.sh")
    (node / "current" / "scripts" / "load_1m.sh").unlink()
    (node / "current" / "scripts" / "load_1m.sh").symlink_to(node / "state" / "plant" / "evil.sh")
    refused: list[str] = []
    for number, cmd in enumerate(refused_commands(node, allowed, canary)):
        answer = served.ask("PUT", f"/api/v1/producers/refused_{number}", {"cmd": cmd, "time_max": 1})
        assert answer.status in (201, 422), (cmd, answer.text)
        if answer.status == 201:
            served.client.put_slot(HOST, f"refused_{number}", running=True)
            refused.append(f"refused_{number}")
    for number, cmd in enumerate(harmless_commands(canary)):
        run(served, f"harmless_{number}", cmd)
    run(served, "changed", "scripts/touch.sh " + str(canary), sha256="0" * 64)
    run(served, "planted", f"{node}/state/plant/evil.sh", sha256=sha256(node / "state" / "plant" / "evil.sh"))

    def slots() -> dict[str, Slot]:
        return {slot.data_name: slot for slot in served.client.slots(HOST).slots}

    eventually(lambda: None not in {slot.outcome for slot in slots().values()})
    started = {s.cmd: s.outcome for n, s in slots().items() if n in (*refused, "changed", "planted")}
    assert {cmd: outcome for cmd, outcome in started.items() if outcome is not Outcome.REFUSED} == {}
    assert len(refused) > 40
    assert not canary.exists()


def test_nobody_tells_an_agent_what_to_run_but_the_service_that_it_asks(
    node: Path, served: Served, canary: Path
) -> None:
    slot = Slot("touch", f"scripts/touch.sh {canary}", 0.1)
    body = json.dumps(Wanted(HOST, 1_000_000_000_000, (slot,)).to_json())
    settings = json.loads((node / "settings.json").read_text())
    before = served.client.slots(HOST).version
    admin = "a-token-for-the-tests"
    own = hashlib.sha256((node / "token").read_bytes().strip()).hexdigest()
    for token in (None, "", admin, hashlib.sha256(admin.encode()).hexdigest(), own):
        connection = HTTPConnection(HOST, settings["port"], timeout=60)
        connection.request("POST", "/api/v1/wanted", body, {"Authorization": f"Bearer {token}"} if token else {})
        assert connection.getresponse().status == 401
        connection.close()

    assert served.client.slots(HOST).version == before
    assert not canary.exists()


def sha256(file: Path) -> str:
    """Of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
