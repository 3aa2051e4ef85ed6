"""What the broker of boxes refuses: shapes of orders, folders and images that are not the caller's to use."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.docker_here import ROOT, DockerHere
from bench.image_here import write_archive
from bench.stage import until
from boxes import create
from boxes.box import Ended, Image, Limits, Program
from boxes.broker.frames import HEADER, REPORT, read_frame
from boxes.broker.images import checked, image_of
from boxes.broker.order import Refusal, Run, parse
from boxes.broker.session import serve
from boxes.broker.settings import Settings
from tests.boxes.test_boxes import Heard
from tests.recipes.pages import block
from tests.recipes.shell import Shell

IMAGE = "sha256:" + "0" * 64
RUN = {"do": "run", "image": IMAGE, "argv": ["true"], "environment": {}, "memory_mb": 64, "vcores": 1}
STRANGER = 54321

CALLER = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from boxes.asking import ask
folder = None if sys.argv[3] == "none" else sys.argv[3]
try:
    connection, told = ask(json.loads(sys.argv[2]), folder)
    print(json.dumps(told))
    while connection.recv(1 << 16):  # a box ends with its caller
        pass
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"do": "exec"}, "there is no order 'exec'"),
        ({"do": None}, "'do' of the order is not what it may be"),
        ({"image": "debian:12"}, "'image' of the order is not what it may be"),
        ({"image": IMAGE + "0"}, "'image' of the order is not what it may be"),
        ({"image": IMAGE + "\n"}, "'image' of the order is not what it may be"),
        ({"image": ["a"]}, "'image' of the order is not what it may be"),
        ({"argv": "true"}, "'argv' of the order is not what it may be"),
        ({"argv": []}, "'argv' of the order is not what it may be"),
        ({"argv": [""]}, "'argv' of the order is not what it may be"),
        ({"argv": ["a\0b"]}, "'argv' of the order is not what it may be"),
        ({"argv": ["\ud800"]}, "'argv' of the order is not what it may be"),
        ({"argv": ["x"] * 10_001}, "'argv' of the order is not what it may be"),
        ({"argv": [1]}, "'argv' of the order is not what it may be"),
        ({"environment": {"A=B": "1"}}, "'environment' of the order is not what it may be"),
        ({"environment": {"A": 1}}, "'environment' of the order is not what it may be"),
        ({"environment": ["A=1"]}, "'environment' of the order is not what it may be"),
        ({"memory_mb": 15}, "'memory_mb' of the order is not what it may be"),
        ({"memory_mb": True}, "'memory_mb' of the order is not what it may be"),
        ({"memory_mb": 1e3}, "'memory_mb' of the order is not what it may be"),
        ({"vcores": 0}, "'vcores' of the order is not what it may be"),
        ({"devices": "nvidia.com/gpu=0"}, "'devices' of the order is not what it may be"),
        ({"devices": ["/dev/sda"]}, "'devices' of the order is not what it may be"),
        ({"devices": ["v.example/c=0"] * 101}, "'devices' of the order is not what it may be"),
        ({"privileged": True}, "an order to run has no 'privileged'"),
        ({"HostConfig": {}}, "an order to run has no 'HostConfig'"),
    ],
)
def test_an_order_of_another_form_is_refused(changes: Mapping[str, object], sentence: str) -> None:
    with pytest.raises(Refusal) as error:
        parse(json.dumps({**RUN, **changes}).encode())

    assert str(error.value) == sentence


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"do": "run"}'])
def test_what_is_no_order_is_refused(line: bytes) -> None:
    with pytest.raises(Refusal):
        parse(line)


def test_an_order_in_form_is_taken_as_it_is() -> None:
    assert parse(json.dumps(RUN).encode()) == Run(IMAGE, ["true"], {}, 64, 1)
    named = parse(json.dumps({**RUN, "devices": ["v.example/c=0"]}).encode())
    assert named == Run(IMAGE, ["true"], {}, 64, 1, ["v.example/c=0"])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*RUN, "more"]), _JSON | st.sampled_from(list(RUN.values()))) | _JSON)
def test_whatever_comes_is_an_order_or_refused(said: Any) -> None:
    try:
        parse(json.dumps(said).encode())
    except Refusal as error:
        assert error.message


@given(st.binary(max_size=300))
def test_bytes_that_are_no_frames_are_an_end_or_the_error_of_a_connection(content: bytes) -> None:
    read = io.BytesIO(content).read

    with suppress(ConnectionError):  # a frame that would be too large
        while (frame := read_frame(read)) is not None:
            assert len(frame[1]) <= len(content)


def test_a_frame_that_would_be_too_large_is_not_waited_for() -> None:
    with pytest.raises(ConnectionError, match="a frame of 65537 bytes"):
        read_frame(io.BytesIO(HEADER.pack(REPORT, 65537)).read, most=65536)


@pytest.fixture
def ask(docker: DockerHere, tmp_path: Path) -> Callable[..., str]:
    """Ask the broker as another user, or as root with `uid` 0: what it says first.

    With `mounts`, lines for a shell, the caller has mounts of its own, as the units of systemd have.
    """

    def as_user(order: Mapping[str, object], folder: Path | None, uid: int = STRANGER, mounts: str = "") -> str:
        own = ["unshare", "--mount", "sh", "-euc", f'{mounts}\nexec "$@"', "sh"] if mounts else []
        words = [
            *own,
            *("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"),
            "/usr/bin/python3",
            "-c",
            CALLER,
            str(ROOT),
            json.dumps({"image": docker.image, **order}),
            str(folder or "none"),
        ]
        docker.socket.chmod(0o666)
        docker.folder.chmod(0o755)
        environment = {"NODEWISE_BOXES": str(docker.socket)}
        told = subprocess.run(words, capture_output=True, text=True, env=os.environ | environment, check=False)
        assert told.returncode == 0, told.stderr
        return told.stdout.strip()

    return as_user


@pytest.fixture
def own(passable: Path) -> Path:
    """A folder of the stranger's below where boxes may work."""
    made = passable / "own"
    made.mkdir()
    os.chown(made, STRANGER, STRANGER)
    return made


def run_of(docker: DockerHere, **changes: object) -> dict[str, object]:
    return {**RUN, "image": docker.image, **changes}


def test_a_caller_has_a_box_of_its_own_user(docker: DockerHere, ask: Callable[..., str], own: Path) -> None:
    assert '"started"' in ask(run_of(docker, argv=["touch", "made"]), own)

    until(lambda: (own / "made").exists(), 60, "the program has run")
    assert (own / "made").stat().st_uid == STRANGER


def test_a_caller_with_mounts_of_its_own_has_a_box_in_its_folder(
    docker: DockerHere, ask: Callable[..., str], own: Path
) -> None:
    assert '"started"' in ask(run_of(docker, argv=["touch", "made"]), own, mounts="mount -o bind,ro /usr /usr")

    until(lambda: (own / "made").exists(), 60, "the program has run")


def test_a_folder_that_only_its_caller_sees_is_refused(docker: DockerHere, ask: Callable[..., str], own: Path) -> None:
    (own / "hidden").mkdir()
    other = f"mount -t tmpfs -o uid={STRANGER} none {own}; mkdir {own}/hidden {own}/new; chown {STRANGER} {own}/*"
    closed = f"mount --bind {own} {own}; mount -o remount,bind,ro {own}"

    for folder, mounts in ((own / "hidden", other), (own / "new", other), (own, closed)):
        said = ask(run_of(docker), folder, mounts=mounts)
        assert said.startswith(f"BoxError: {folder} is not the same for its caller and for others")


def test_a_folder_of_somebody_else_is_refused(docker: DockerHere, ask: Callable[..., str], passable: Path) -> None:
    passable.chmod(0o777)

    assert ask(run_of(docker), passable) == f"BoxError: {passable} is not its caller's: send a folder of your own"


def test_a_folder_where_boxes_may_not_work_is_refused(docker: DockerHere, ask: Callable[..., str]) -> None:
    place = Path("/var/tmp/nodewise-test-box")
    place.mkdir(exist_ok=True)
    os.chown(place, STRANGER, STRANGER)
    try:
        assert f"BoxError: {place} is not where boxes may work" in ask(run_of(docker), place)
    finally:
        place.rmdir()


def test_a_link_and_a_path_with_dots_lead_to_where_they_lead(
    docker: DockerHere, ask: Callable[..., str], own: Path
) -> None:
    (own / "link").symlink_to("/usr")

    assert "BoxError: /usr is not its caller's" in ask(run_of(docker), own / "link")
    assert "BoxError: /tmp is not its caller's" in ask(run_of(docker), own / "../..")


def test_an_order_without_a_folder_or_with_a_file_is_refused(
    docker: DockerHere, ask: Callable[..., str], own: Path
) -> None:
    (own / "file").write_text("")
    os.chown(own / "file", STRANGER, STRANGER)

    for folder in (None, own / "file"):
        assert ask(run_of(docker), folder) == "BoxError: the order comes without a folder: send an open folder with it"


def test_an_image_that_no_operator_allows_is_refused(docker: DockerHere, ask: Callable[..., str], own: Path) -> None:
    for order in ({**RUN, "image": IMAGE}, {"do": "look", "image": IMAGE}, {"do": "load", "image": IMAGE}):
        assert (
            ask(order, own)
            == f"BoxError: the image {IMAGE} is not allowed here: an operator allows it in {docker.images}"
        )


def test_more_than_the_operator_settled_is_refused(docker: DockerHere, ask: Callable[..., str], own: Path) -> None:
    assert "are more than a box may have here: ask for 1048576 at most" in ask(run_of(docker, memory_mb=10**7), own)
    assert "2000 cores are more than a box may have here" in ask(run_of(docker, vcores=2000), own)


def test_root_is_refused_unless_the_operator_wants_it(docker: DockerHere) -> None:
    docker.settle(least_uid=1)
    words = [sys.executable, "-m", "boxes.broker", "--settings", str(docker.settings)]
    here, there = socket.socketpair()
    try:
        with here, there, subprocess.Popen(words, stdin=there.fileno(), cwd=ROOT):
            here.sendall(json.dumps(run_of(docker)).encode() + b"\n")
            frame = read_frame(here.recv)
    finally:
        docker.settle(least_uid=0)
    assert frame is not None and frame[0] == REPORT
    assert json.loads(frame[1])["refused"] == "boxes are not for root"


@pytest.mark.parametrize("sent", [b"", b"x" * 100, b"{}\n{}\n", b"\0" * 5_000_000, HEADER.pack(3, 5)])
def test_a_caller_that_sends_anything_gets_a_refusal_or_an_end(docker: DockerHere, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(docker.socket))
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            frame = read_frame(connection.recv)
        except ConnectionError:  # it has hung up before it took all
            return
    assert frame is None or "refused" in json.loads(frame[1])


def test_the_broker_of_the_page_needs_only_a_bare_python_and_three_capabilities(
    docker: DockerHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = (ROOT / "boxes/systemd/nodewise-boxes@.service").read_text()
    assert "CapabilityBoundingSet=CAP_SYS_ADMIN CAP_KILL CAP_DAC_READ_SEARCH\n" in unit
    assert "/usr/bin/python3 -I -S /usr/local/lib/nodewise/broker.pyz\n" in unit
    shell = Shell(tmp_path / "home", tmp_path / "work")
    shell.run(block("task-broker"))
    place = shell.folder / "broker.json"
    place.write_text(json.dumps(json.loads(block("task-broker-settings")) | json.loads(docker.settings.read_text())))
    words = [
        "setpriv",
        "--bounding-set=-all,+sys_admin,+kill,+dac_read_search",
        "--no-new-privs",
        "/usr/bin/python3",
        "-I",
        "-S",
    ]
    words += ["broker.pyz", "--listen", "boxes.sock", "--settings", "broker.json"]
    with subprocess.Popen(words, cwd=shell.folder, stdout=subprocess.PIPE) as broker:
        try:
            assert broker.stdout and broker.stdout.readline().startswith(b"listening")
            monkeypatch.setenv("NODEWISE_BOXES", str(shell.folder / "boxes.sock"))
            heard, box = Heard(), create("docker")
            own = tmp_path / "closed" / "own"
            own.mkdir(parents=True)
            os.chown(own.parent, STRANGER, STRANGER)
            own.parent.chmod(0o700)
            image = Image(docker.image, docker.fetch)
            box.start(Program(["bash", "-c", "echo here"], {}, own, Limits(64), image), heard)
            assert (box.wait(90), bytes(heard.stdout)) == (Ended(0), b"here\n")
        finally:
            broker.kill()


def test_settings_that_others_may_write_are_not_used(tmp_path: Path) -> None:
    file = tmp_path / "broker.json"
    file.write_text('{"folders": []}')
    file.chmod(0o666)

    with pytest.raises(PermissionError, match="others than root may write"):
        Settings.load(file)


def archive_of(path: Path, layers: list[bytes], diff_ids: list[str] | None = None, tags: tuple[str, ...] = ()) -> str:
    ids = diff_ids if diff_ids is not None else [f"sha256:{hashlib.sha256(one).hexdigest()}" for one in layers]
    configuration = json.dumps({"os": "linux", "rootfs": {"type": "layers", "diff_ids": ids}}).encode()
    write_archive(path, configuration, layers, tags)
    return f"sha256:{hashlib.sha256(configuration).hexdigest()}"


def test_of_an_archive_docker_gets_the_image_and_nothing_else(tmp_path: Path) -> None:
    image = archive_of(tmp_path / "a.tar", [b"one", b"two"], tags=("debian:12",))
    with tarfile.open(tmp_path / "a.tar", "a") as more:
        more.addfile(tarfile.TarInfo("repositories"))
        more.addfile(tarfile.TarInfo("../../etc/passwd"))

    with (
        (tmp_path / "a.tar").open("rb") as archive,
        checked(archive, image) as made,
        tarfile.open(fileobj=made) as read,
    ):
        assert read.getnames() == ["manifest.json", "image.json", "0.tar", "1.tar"]
        manifest = json.load(read.extractfile("manifest.json") or io.BytesIO())
        layers = [(read.extractfile(name) or io.BytesIO()).read() for name in ("0.tar", "1.tar")]
    assert manifest == [{"Config": "image.json", "RepoTags": None, "Layers": ["0.tar", "1.tar"]}]
    assert layers == [b"one", b"two"]


def test_layers_that_are_packed_are_unpacked(tmp_path: Path) -> None:
    layer = b"a layer" * 1000
    image = archive_of(tmp_path / "a.tar", [gzip.compress(layer)], [f"sha256:{hashlib.sha256(layer).hexdigest()}"])

    with (
        (tmp_path / "a.tar").open("rb") as archive,
        checked(archive, image) as made,
        tarfile.open(fileobj=made) as read,
    ):
        assert (read.extractfile("0.tar") or io.BytesIO()).read() == layer


def test_an_archive_with_other_bytes_than_its_image_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    wrong = f"sha256:{hashlib.sha256(b'other').hexdigest()}"
    cases: list[tuple[Callable[[], str], str]] = [
        (lambda: archive_of(path, [b"one"], [wrong]), "a layer is not the one that the image names"),
        (lambda: archive_of(path, [b"one"], []), "the image's configuration does not name its layers"),
        (lambda: archive_of(path, [b"\x1f\x8bnot packed"], [wrong]), "a layer cannot be read"),
        (lambda: archive_of(path, [b"x"] * 129), "the image has more than 128 layers"),
        (lambda: archive_of(path, [b"one"])[:-1], "the archive holds sha256:"),
        (lambda: str(path.write_bytes(b"no tar")), "it is not a tar archive of an image"),
        (lambda: str(path.write_bytes(b"")), "it is not a tar archive of an image"),
    ]
    for make, sentence in cases:
        image = make()
        with path.open("rb") as archive, pytest.raises(Refusal) as error, checked(archive, image):
            pytest.fail("it was taken")
        assert error.value.message.startswith(sentence)


@pytest.mark.parametrize("pax", [{"GNU.sparse.map": "x"}, {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}])
def test_headers_that_nobody_writes_are_refused(tmp_path: Path, pax: dict[str, str]) -> None:
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as write:
        member = tarfile.TarInfo("manifest.json")
        member.size, member.pax_headers = 512, pax
        write.addfile(member, io.BytesIO(b"\0" * 512))

    with (tmp_path / "a.tar").open("rb") as archive, pytest.raises(Refusal):
        image_of(archive)


def test_an_archive_is_refused_where_the_disk_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = archive_of(tmp_path / "a.tar", [b"one"])
    monkeypatch.setattr("boxes.broker.images.SPARE_BYTES", 1 << 60)

    with (tmp_path / "a.tar").open("rb") as archive, pytest.raises(Refusal) as error, checked(archive, image):
        pytest.fail("it was taken")
    assert error.value.message == "the node's disk has no room for the image"


def test_an_order_has_to_come_within_its_time_however_often_a_byte_of_it_comes(
    docker: DockerHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boxes.broker.session.ORDER_SECONDS", 0.5)
    here, there = socket.socketpair()
    with here, there:
        serving = threading.Thread(target=serve, args=(there, Settings.load(docker.settings)))
        serving.start()
        while serving.is_alive():
            with suppress(OSError):
                here.sendall(b" ")
            serving.join(0.1)
        frame = read_frame(here.recv)
    assert frame is not None and "did not come within 0.5 s" in json.loads(frame[1])["refused"]


def test_the_image_of_an_archive_is_known_by_its_bytes(tmp_path: Path) -> None:
    image = archive_of(tmp_path / "a.tar", [b"one"])

    with (tmp_path / "a.tar").open("rb") as archive:
        assert image_of(archive) == image
