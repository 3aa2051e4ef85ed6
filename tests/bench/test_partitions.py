"""Networks that are cut, on a bridge between two machines that are nothing but network namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.faults.partitions import TABLE, Cut, cut

BRIDGE, ONE, OTHER = "nwcut0", "10.99.77.1", "10.99.77.2"
NAMES = {ONE: "nwcut1", OTHER: "nwcut2"}
PORT, FREE_PORT = 8030, 9000
# A program that answers on two ports until its input ends.
LISTEN = """
import socketserver, sys, threading
socketserver.TCPServer.allow_reuse_address = True
for port in map(int, sys.argv[2:]):
    server = socketserver.TCPServer((sys.argv[1], port), socketserver.BaseRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
REACH = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3]))"
SEND = "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (sys.argv[1], 99))"
HEAR = """
import socket, sys
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind((sys.argv[1], 99))
heard.settimeout(float(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()  # until something was sent
try:
    heard.recv(9)
except TimeoutError:
    sys.exit(1)
"""
SOON, PATIENCE = "0.5", "60"
"""Seconds: what is lost is waited for as long as the first, and what gets there may take as long as the second."""


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def machines() -> Iterator[None]:
    if os.geteuid() or not shutil.which("nft"):
        pytest.skip("only root with nft can cut a network")
    try:
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "link", "set", BRIDGE, "up")
        for address, name in NAMES.items():
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"{name}v", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"{name}v", "master", BRIDGE, "up")
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
        yield
    finally:
        for name in NAMES.values():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
        subprocess.run(["ip", "link", "delete", BRIDGE], capture_output=True)


def on(address: str, script: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", NAMES[address], sys.executable, "-c", script, *words]


@contextmanager
def started(address: str, script: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A program on a machine, once it is ready."""
    piped = subprocess.PIPE
    with subprocess.Popen(on(address, script, address, *words), stdin=piped, stdout=piped, text=True) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        yield process


def reaches(source: str, target: str, port: int, seconds: str = PATIENCE) -> bool:
    """Whether a connection is made."""
    return subprocess.run(on(source, REACH, target, str(port), seconds), capture_output=True).returncode == 0


def hears(target: str, source: str, seconds: str = PATIENCE) -> bool:
    """Whether what the source sends gets there, whatever becomes of answers."""
    with started(target, HEAR, seconds) as process:
        subprocess.run(on(source, SEND, target), check=True)
        process.communicate("sent\n", timeout=120)
        return process.returncode == 0


@pytest.mark.usefixtures("machines")
@pytest.mark.parametrize(("there", "back"), [(True, True), (True, False), (False, True)])
def test_machines_do_not_hear_each_other_or_one_of_them_not_the_other(there: bool, back: bool) -> None:
    with cut(Cut(ONE, OTHER).rules(there, back)):
        assert hears(OTHER, ONE, SOON if there else PATIENCE) is not there
        assert hears(ONE, OTHER, SOON if back else PATIENCE) is not back

    assert hears(OTHER, ONE)
    assert TABLE not in run("nft", "list", "tables")


@pytest.mark.usefixtures("machines")
@pytest.mark.parametrize(("there", "back"), [(True, False), (False, True)])
def test_only_these_ports_of_the_second_machine_are_cut_off(there: bool, back: bool) -> None:
    ports = (str(PORT), str(FREE_PORT))
    with started(OTHER, LISTEN, *ports), started(ONE, LISTEN, *ports):
        with cut(Cut(ONE, OTHER, (PORT,)).rules(there, back)):
            assert not reaches(ONE, OTHER, PORT, SOON)
            assert reaches(ONE, OTHER, FREE_PORT)
            assert reaches(OTHER, ONE, PORT)
        assert reaches(ONE, OTHER, PORT)
