"""A Docker of its own and the broker before it, on this machine, for benches and tests."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from bench.image_here import make_image
from bench.info.errors import BenchError
from bench.stage import until
from boxes.broker.engine import Engine, EngineError
from boxes.broker.images import pieces

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 180.0
CLAIM_SECONDS = 1200.0
"""How long another Docker of benches or tests may have the socket, of which runners know one alone."""


class DockerHere:
    """dockerd, which can be killed and started again, a broker that listens, and an image that is allowed."""

    def __init__(self, folder: Path, allowed_folders: list[Path], socket: Path | None = None) -> None:
        self.folder = folder
        self.work = allowed_folders[0]
        self.docker = folder / "docker.sock"
        self.socket = socket or folder / "boxes.sock"
        self.engine = Engine(str(self.docker))
        self.archive = folder / "image.tar"
        self.image = make_image(self.archive)
        self.images = folder / "images"
        self.images.write_text(f"{self.image}  programs of this machine\n")
        self.settings = folder / "broker.json"
        self.settle(folders=[str(one) for one in allowed_folders])

    def settle(self, **changes: object) -> None:
        """Write the broker's settings, which it reads when it starts."""
        kept = json.loads(self.settings.read_text()) if self.settings.exists() else {}
        own = {
            "images": str(self.images),
            "docker": str(self.docker),
            "least_uid": 0,
            "cgroup_parent": "/nodewise-tests",
        }
        self.settings.write_text(json.dumps({**own, **kept, **changes}))

    def start(self) -> None:
        """Start both, once no other has the socket; Docker has the image."""
        self._claim = os.open(f"{self.socket}.lock", os.O_CREAT | os.O_WRONLY)  # given back when this process ends
        with ExitStack() as begun:  # where it cannot all be started, nothing of it stays
            begun.callback(os.close, self._claim)
            begun.callback(self._take_away)
            until(self._is_claimed, CLAIM_SECONDS, f"{self.socket} is free")
            self.start_docker()
            begun.callback(self._end_docker)
            with self.archive.open("rb") as archive:
                self.engine.load(pieces(archive))
            self.start_broker()
            begun.pop_all()

    def start_docker(self) -> None:
        """Start dockerd anew with what an earlier one left."""
        (self.folder / "exec/containerd/containerd.pid").unlink(missing_ok=True)
        (self.folder / "docker.pid").unlink(missing_ok=True)
        configuration = self.folder / "docker.json"
        configuration.write_text(json.dumps(self._docker_settings()))
        words = ["dockerd", "--config-file", str(configuration)]
        own = os.environ | {"TMPDIR": str(self.folder)}  # a containerd that answers late leaves its stacks there
        with (self.folder / "dockerd.log").open("ab") as log:
            self.dockerd = subprocess.Popen(words, stdout=log, stderr=log, env=own, start_new_session=True)
        try:
            until(self._answers, SECONDS, "Docker answers")
        except BaseException:
            self.kill_docker()
            raise

    def kill_docker(self) -> None:
        """End dockerd and its containerd by SIGKILL; what runs in boxes goes on without them."""
        self.dockerd.kill()
        self.dockerd.wait()
        with suppress(OSError, ValueError):
            os.kill(int((self.folder / "exec/containerd/containerd.pid").read_text()), signal.SIGKILL)

    def start_broker(self) -> None:
        """Start the broker; each caller has a process of it."""
        words = [sys.executable, "-m", "boxes.broker", "--listen", str(self.socket), "--settings", str(self.settings)]
        self.broker = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT)
        if not (self.broker.stdout and self.broker.stdout.readline().startswith(b"listening")):
            self._end_broker()
            raise BenchError("the broker of boxes does not listen")

    def stop(self) -> None:
        """End both, with all boxes, and take away what they left and mounted."""
        try:
            self._end_broker()
            self.stop_docker()
        finally:
            os.close(self._claim)

    def stop_docker(self) -> None:
        """End dockerd with all containers, and take away what they left and mounted."""
        if self.dockerd.poll() is None:  # it may have been killed, and not have started anew
            for container in self.containers():
                with suppress(EngineError):  # a guard removes it already
                    self.engine.ask("DELETE", f"/containers/{container}", force="1")
            self._end_docker()
        self._take_away()

    def _end_broker(self) -> None:
        self.broker.kill()
        self.broker.communicate()

    def _end_docker(self) -> None:
        self.dockerd.send_signal(signal.SIGTERM)
        self.dockerd.wait(SECONDS)

    def _take_away(self) -> None:
        """Unmount and delete what Docker has left."""
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for mount in sorted((one for one in mounts if one.startswith(f"{self.folder}/")), reverse=True):
            subprocess.run(["umount", "--lazy", mount], check=True)
        shutil.rmtree(self.folder)

    def containers(self) -> list[str]:
        """All there are, by id, those that have ended too."""
        return [one["Id"] for one in self.engine.ask("GET", "/containers/json", all="1")]

    def fetch(self, archive: Path) -> None:
        """Write the image's archive there."""
        shutil.copyfile(self.archive, archive)

    def forget_image(self) -> None:
        """Have Docker lose the image."""
        self.engine.ask("DELETE", f"/images/{self.image}", force="1")

    def _is_claimed(self) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def _docker_settings(self) -> dict[str, object]:
        namespace = "".join(filter(str.isalnum, self.folder.name))  # containerd takes no other names
        return {
            "hosts": [f"unix://{self.docker}"],
            "group": "root",
            "pidfile": str(self.folder / "docker.pid"),
            "data-root": str(self.folder / "data"),
            "exec-root": str(self.folder / "exec"),
            "containerd-namespace": namespace,
            "containerd-plugins-namespace": f"{namespace}-plugins",
            "storage-driver": "overlay2",
            "exec-opts": ["native.cgroupdriver=cgroupfs"],
            "bridge": "none",
            "iptables": False,
            "ip-forward": False,
            "ip-masq": False,
            "userland-proxy": False,
        }

    def _answers(self) -> bool:
        if self.dockerd.poll() is not None:
            raise BenchError(f"Docker has ended: {(self.folder / 'dockerd.log').read_text()[-3000:]}")
        try:
            self.engine.ask("GET", "/_ping")
        except OSError:
            return False
        return True
