"""Another program in a box that runs, by a terminal."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from boxes.broker.engine import NOT_FOUND, Engine, EngineError
from boxes.broker.frames import INPUT, MOST_INPUT_BYTES, SIDES, SIZE, STDOUT, TERM, frame, read_frame, report
from boxes.broker.guard import LABEL, end
from boxes.broker.order import Open, Refusal

PIECE_BYTES = 1 << 16
END_SECONDS = 10.0
"""How long Docker may take to tell how a program has ended."""
PAUSE_SECONDS = 0.01


class OpenTerminal:
    """The program of one order. `run` returns once it has ended, which its caller brings about by hanging up."""

    def __init__(self, engine: Engine, order: Open, caller: socket.socket, user: str) -> None:
        """`user` is the caller's, as Docker writes it."""
        self._engine = engine
        self._order = order
        self._caller = caller
        self._user = user
        self._over = threading.Event()
        self._has_output_ended = False

    def run(self) -> None:
        """Errors are Refusal, EngineError and OSError."""
        self._check_owner()
        self._id = self._engine.ask("POST", f"/containers/{self._order.box}/exec", self._body())["Id"]
        with self._engine.start_terminal(self._id) as stream:
            bringing = threading.Thread(target=self._bring, args=(stream,), daemon=True)
            try:
                self._use(stream, bringing)
            finally:
                try:
                    self._end()
                finally:
                    self._check_taken(bringing)
        self._caller.sendall(report({"ended": self._exit_code()}))

    def _use(self, stream: socket.socket, bringing: threading.Thread) -> None:
        """Pass on what comes in both directions, until the program has ended or the caller has hung up."""
        self._caller.sendall(report({"started": self._order.box}))
        self._resize(self._order.columns, self._order.rows)
        taking = threading.Thread(target=self._pass_on, args=(stream,), daemon=True)
        for one in (taking, bringing):
            one.start()
        self._over.wait()
        if not self._has_output_ended:
            self._end()
        bringing.join(END_SECONDS)

    def _check_taken(self, bringing: threading.Thread) -> None:
        """Hang up if output is still being brought: whatever else was told could come into the middle of its frame."""
        if bringing.is_alive():
            with suppress(OSError):  # the caller has hung up
                self._caller.shutdown(socket.SHUT_RDWR)

    def _check_owner(self) -> None:
        """Refusal unless it is a box of the caller's."""
        refused = Refusal(f"no box {self._order.box} of yours runs here")
        try:
            found = self._engine.ask("GET", f"/containers/{self._order.box}/json")
        except EngineError as error:
            if error.status == NOT_FOUND:
                raise refused from None
            raise
        config = found["Config"]
        if LABEL not in config["Labels"] or config["User"] != self._user or not found["State"]["Running"]:
            raise refused

    def _body(self) -> dict[str, Any]:
        """What runs, as Docker's API has it."""
        streams = {"AttachStdin": True, "AttachStdout": True, "AttachStderr": True, "Tty": True}
        return {"Cmd": list(self._order.argv), "Env": [f"TERM={TERM}"], **streams}

    def _bring(self, stream: socket.socket) -> None:
        """Bring the caller what the program writes, until it has ended."""
        with suppress(OSError):
            while piece := stream.recv(PIECE_BYTES):
                self._caller.sendall(frame(STDOUT, piece))
        self._has_output_ended = True
        self._over.set()

    def _pass_on(self, stream: socket.socket) -> None:
        """Pass on what the caller sends, until it hangs up or says that it sends no more."""
        watching = threading.Thread(target=self._watch, daemon=True)
        watching.start()
        with suppress(OSError):
            while told := read_frame(self._caller.recv, MOST_INPUT_BYTES):
                kind, content = told
                if kind == INPUT:
                    stream.sendall(content)
                elif kind == SIZE and len(content) == SIDES.size:
                    self._resize(*SIDES.unpack(content))
        self._over.set()

    def _watch(self) -> None:
        """See that the caller has hung up also while the program reads nothing of what it has sent."""
        looking = select.poll()
        looking.register(self._caller, select.POLLRDHUP)
        looking.poll()
        self._over.set()

    def _resize(self, columns: int, rows: int) -> None:
        with suppress(EngineError, OSError):  # it has ended meanwhile, or Docker is busy
            self._engine.ask("POST", f"/exec/{self._id}/resize", w=str(columns), h=str(rows))

    def _end(self) -> None:
        """Kill the program, if it runs: the kernel tells those that it has in its foreground."""
        state = self._state()
        if not state["Running"] or not state["Pid"]:
            return
        with suppress(ProcessLookupError):
            pidfd = os.pidfd_open(state["Pid"])
            if self._state()["Running"]:  # else this is another process
                end(pidfd)
            os.close(pidfd)

    def _exit_code(self) -> int:
        deadline = time.monotonic() + END_SECONDS
        while (state := self._state())["Running"]:
            if time.monotonic() > deadline:
                raise ConnectionError("Docker does not tell how the program has ended")
            time.sleep(PAUSE_SECONDS)
        return int(state["ExitCode"] or 0)

    def _state(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._engine.ask("GET", f"/exec/{self._id}/json")
        except EngineError as error:
            if error.status != NOT_FOUND:
                raise
            return {"Running": False, "Pid": 0, "ExitCode": 137}  # the box has ended, and this with it
        return found
