"""Images that Docker pulls from their caller: what the broker lets it pull, and what bounds that. Docker is played."""

from __future__ import annotations

import fcntl
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from boxes.asking import ask
from boxes.box import BoxError, Image, Served
from boxes.broker import pulling, session
from boxes.broker.frames import read_frame
from boxes.broker.manifest import digest_of, manifest_of
from boxes.broker.order import Pull, Refusal, parse
from boxes.broker.settings import Settings
from boxes.docker import _bring
from hadoop.client.filesystem import FileSystem
from jobs.kinds.task import image_store
from jobs.kinds.task.images.pull_server import PulledImage, PullServer
from tests.boxes.played_docker import PlayedDocker
from tests.jobs.kept_images import HOME, configuration_of, digest, played_hdfs, save
from tests.threads import join_threads

NAME = "0123456789abcdef" * 2
BASE, OWN, OTHER = (word * 300_000 for word in (b"base", b"own", b"other"))
CONFIGURATION = configuration_of([BASE, OWN]).decode()
IMAGE = digest(CONFIGURATION.encode())
SIZES = [len(BASE), len(OWN)]
PULL = {"do": "pull", "image": IMAGE, "port": 5000, "name": NAME, "configuration": CONFIGURATION, "sizes": SIZES}


def fetch_nothing(_: Path) -> None:
    pytest.fail("it needs no archive")


@pytest.fixture
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedDocker]:
    made = PlayedDocker(tmp_path_factory.mktemp("d"))
    yield made
    made.close()


@pytest.fixture
def settings(docker: PlayedDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    (tmp_path / "images").write_text(f"{IMAGE}\n{digest(configuration_of([BASE, OTHER]))}\n")
    monkeypatch.setattr(session, "LOADING", tmp_path / "run" / "loading")
    return Settings(folders=[str(tmp_path)], images=str(tmp_path / "images"), docker=str(docker.socket), least_uid=0)


@pytest.fixture
def broker(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The broker, which listens where boxes of this process look for it."""
    path = tmp_path / "boxes.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def listen() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    def one(connection: socket.socket) -> None:
        with connection:
            session.serve(connection, settings)
            await_hung_up()

    threading.Thread(target=listen, daemon=True).start()
    monkeypatch.setenv("NODEWISE_BOXES", str(path))
    yield path
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def await_hung_up() -> None:
    """Until the threads have ended that wait for a caller to hang up: a broker would be gone with them."""
    join_threads("hung up")


def served(*layers: bytes) -> PulledImage:
    contents = {digest(one): one for one in layers}
    return PulledImage(
        configuration_of(layers), [len(one) for one in layers], lambda name, begin: iter([contents[name][begin:]])
    )


def refusal(order: Mapping[str, object]) -> str:
    with pytest.raises(Refusal) as refused:
        parse(json.dumps(order).encode())
    return refused.value.message


@pytest.mark.parametrize(
    "changes",
    [
        {"port": 0},
        {"port": 65536},
        {"port": "5000"},
        {"name": "library/debian"},
        {"name": NAME + "0"},
        {"name": NAME.upper()},
        {"name": "a@sha256:" + NAME[:20]},
        {"configuration": {}},
        {"configuration": "\ud800"},
        {"sizes": 5},
        {"sizes": [-1]},
        {"sizes": [True]},
        {"sizes": [1] * 129},
        {"sizes": [1 << 40]},
    ],
)
def test_an_order_to_pull_of_another_form_is_refused(changes: Mapping[str, object]) -> None:
    assert refusal({**PULL, **changes}) == f"{next(iter(changes))!r} of the order is not what it may be"


def test_an_order_to_pull_has_nothing_more_and_nothing_less() -> None:
    assert parse(json.dumps(PULL).encode()) == Pull(IMAGE, 5000, NAME, CONFIGURATION, SIZES)
    assert refusal({**PULL, "host": "10.0.0.1"}) == "an order to pull has no 'host'"
    for missing in PULL:
        assert (
            refusal({name: value for name, value in PULL.items() if name != missing}) == f"the order has no {missing!r}"
        )


def test_the_manifest_of_an_image_is_the_same_in_every_version() -> None:
    """Change this and brokers of earlier versions pull nothing any more."""
    layer = "sha256:" + "1" * 64
    configuration = json.dumps({"rootfs": {"diff_ids": [layer]}}).encode()

    assert manifest_of(configuration, [5]).decode() == (
        '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",'
        '"config":{"mediaType":"application/vnd.oci.image.config.v1+json",'
        f'"digest":"{digest_of(configuration)}","size":{len(configuration)}}},'
        '"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar",'
        f'"digest":"{layer}","size":5}}]}}'
    )


def test_docker_pulls_an_image_from_hdfs_and_of_the_next_one_what_it_lacks(
    docker: PlayedDocker, broker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hdfs, heard = played_hdfs(tmp_path / "hdfs", monkeypatch), list[str]()
    for layers in ([BASE, OWN], [BASE, OTHER]):
        save(tmp_path / "a.tar", layers)
        added = image_store.add(hdfs, tmp_path / "a.tar", "a")
        image = Image(added.image.id, fetch_nothing, serving(hdfs, added.image.id, heard))
        _bring(image, tmp_path)
        _bring(image, tmp_path)  # it is there

    assert docker.images == {digest(configuration_of([BASE, one])) for one in (OWN, OTHER)}
    assert docker.layers == {*map(digest, (BASE, OWN, OTHER))}
    assert heard == ["Docker has fetched 2 of 2 layers", "Docker has fetched 1 of 2 layers; it had the others"]
    (first, by), (second, _) = docker.pulls
    assert first.startswith("127.0.0.1:") and first.partition("/")[2] != second.partition("/")[2]
    assert by == digest(manifest_of(CONFIGURATION.encode(), SIZES))


def serving(hdfs: FileSystem, image: str, heard: list[str]) -> Callable[[], AbstractContextManager[Served] | None]:
    return lambda: image_store.serve(hdfs, f"{HOME}/.nodewise", image, heard.append)


def test_an_image_that_is_kept_as_an_archive_is_loaded(docker: PlayedDocker, broker: Path, tmp_path: Path) -> None:
    def fetch(archive: Path) -> None:
        save(archive, [BASE, OWN])

    with pytest.raises(OSError, match="played Dockers do not load"):
        _bring(Image(IMAGE, fetch), tmp_path)
    assert (docker.loads, docker.pulls, list(tmp_path.glob("image-*"))) == (1, [], [])


def test_a_broker_of_an_earlier_version_is_sent_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mapping[str, Any]] = []

    def answer(order: Mapping[str, Any], _: Path | None = None) -> tuple[socket.socket, Mapping[str, Any]]:
        asked.append(order)
        return socket.socket(), {"there": False}

    monkeypatch.setattr("boxes.docker.ask", answer)
    _bring(Image(IMAGE, lambda archive: archive.touch(), lambda: pytest.fail("it cannot pull")), tmp_path)

    assert [one["do"] for one in asked] == ["look", "load"]


def pull(kept: PulledImage, **changes: object) -> Mapping[str, Any]:
    """Ask the broker to have it pulled; what it says."""
    with PullServer({NAME: kept}) as server:
        place = Served(server.port, NAME, kept.configuration.decode(), kept.sizes)
        connection, told = ask({"do": "pull", "image": IMAGE, **asdict(place), **changes})
        connection.close()
        return told


def test_what_an_operator_did_not_allow_is_not_pulled(docker: PlayedDocker, broker: Path) -> None:
    other = served(BASE)
    with pytest.raises(BoxError, match=f"the image {digest(other.configuration)} is not allowed here"):
        pull(other, image=digest(other.configuration))
    with pytest.raises(BoxError, match=f"the configuration is that of {digest(other.configuration)} and not of"):
        pull(other)
    with pytest.raises(BoxError, match="the image has 2 layers and not 1"):
        pull(served(BASE, OWN), sizes=[5])
    assert docker.pulls == []


def test_other_bytes_than_were_allowed_make_no_image(docker: PlayedDocker, broker: Path) -> None:
    image = served(BASE, OWN)
    exchanged = PulledImage(image.configuration, image.sizes, lambda _, begin: iter([b"\0" * len(BASE)]))

    with pytest.raises(OSError, match="Docker says: "):
        pull(exchanged)
    with pytest.raises(OSError, match="Docker says: verification failed"):
        pull(image, sizes=[1, 1])  # another manifest than the server's
    assert (docker.images, docker.layers) == (set(), set())


def test_a_docker_that_makes_another_image_of_it_is_told(docker: PlayedDocker, broker: Path) -> None:
    docker.images = _Forgetful()

    with pytest.raises(BoxError, match=f"Docker does not make {IMAGE} of its layers"):
        pull(served(BASE, OWN))


class _Forgetful(set[str]):
    def add(self, _: str) -> None:
        """As a Docker with containerd's store, which knows images by other ids."""


def test_a_pull_ends_where_the_disk_is_nearly_full(
    docker: PlayedDocker, broker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker.hangs, docker.says = True, [{"status": "Downloading", "progressDetail": {"current": 1 << 40}}]
    room = iter([None, None])

    def check(place: str, called: str) -> None:
        assert place == called == str(docker.root)
        if next(room, "full") == "full":
            raise Refusal("the node's disk has no room for the image", f"free some of {called} there")

    monkeypatch.setattr(pulling, "check_room", check)
    with pytest.raises(BoxError, match=f"no room for the image: free some of {docker.root} there"):
        pull(served(BASE, OWN))
    assert docker.given_up.wait(20), "Docker hears that nobody waits for it"


def test_a_pull_that_takes_too_long_ends(docker: PlayedDocker, broker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker.hangs, docker.says = True, [{"status": "Downloading"}]
    monkeypatch.setattr(pulling, "LOAD_SECONDS", 0.3)

    with pytest.raises(BoxError, match=r"the image did not come within 0\.3 s"):
        pull(served(BASE, OWN))
    assert docker.given_up.wait(20)


def test_an_image_is_waited_for_that_others_bring_and_not_for_ever(
    docker: PlayedDocker, broker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "WAIT_SECONDS", 0.3)
    place = session.LOADING.with_name(f"pulling-{IMAGE.removeprefix('sha256:')}")
    place.parent.mkdir()
    with place.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(BoxError, match=r"others have been bringing images .* for 0\.3 s and are not done: "):
            pull(served(BASE, OWN))
        assert docker.pulls == []
        monkeypatch.setattr(session, "WAIT_SECONDS", 60.0)
        threading.Timer(0.2, fcntl.flock, (other, fcntl.LOCK_UN)).start()
        assert pull(served(BASE, OWN)) == {"pulled": IMAGE}


def test_a_docker_that_tells_nothing_is_not_waited_for(
    docker: PlayedDocker, broker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker.hangs = True
    monkeypatch.setattr(pulling, "SILENCE_SECONDS", 0.3)

    with pytest.raises(OSError, match="timed out"):
        pull(served(BASE, OWN))
    assert docker.given_up.wait(20)


def test_a_pull_ends_with_its_caller(docker: PlayedDocker, settings: Settings) -> None:
    docker.hangs = True
    here, there = socket.socketpair()
    serving = threading.Thread(target=session.serve, args=(there, settings))
    serving.start()
    here.sendall(json.dumps(PULL).encode() + b"\n")
    while not docker.pulls:
        assert serving.is_alive()

    here.close()

    serving.join(20)
    await_hung_up()
    there.close()
    assert not serving.is_alive() and docker.given_up.wait(20)


def test_nobody_else_can_hold_up_loads_and_pulls(broker: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "loading").touch(mode=0o644)
    with pytest.raises(OSError, match="Docker says"), PullServer({}) as server:
        ask({**PULL, "port": server.port})
    with pytest.raises(BoxError, match="not a tar archive"):
        ask({"do": "load", "image": IMAGE}, tmp_path / "images")

    locks = sorted((tmp_path / "run").iterdir())
    assert [one.name.partition("-")[0] for one in locks] == ["loading", "pulling"]
    assert [one.stat().st_mode & 0o777 for one in locks] == [0o600, 0o600]


def test_two_who_need_an_image_at_once_have_it_pulled_once(docker: PlayedDocker, broker: Path) -> None:
    docker.hangs, docker.says = True, [{"status": "Waiting"}]
    told: list[Mapping[str, Any]] = []
    asking = [threading.Thread(target=lambda: told.append(pull(served(BASE, OWN)))) for _ in range(2)]
    for one in asking:
        one.start()
    while not docker.pulls:
        assert asking[0].is_alive()
    asking[1].join(0.3)
    docker.hangs = False
    for one in asking:
        one.join(20)

    assert told == [{"pulled": IMAGE}] * 2
    assert len(docker.pulls) == 1


def test_a_look_tells_that_the_broker_pulls(docker: PlayedDocker, settings: Settings) -> None:
    here, there = socket.socketpair()
    with here, there:
        here.sendall(json.dumps({"do": "look", "image": IMAGE}).encode() + b"\n")
        session.serve(there, settings)
        frame = read_frame(here.recv)
    assert frame is not None and json.loads(frame[1]) == {"there": False, "pulls": True, "devices": []}
