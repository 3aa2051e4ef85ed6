"""What the broker does for one caller, in a process of its own."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from boxes.broker import images
from boxes.broker.engine import LOAD_SECONDS, NOT_FOUND, Engine, EngineError
from boxes.broker.frames import MOST_ORDER_BYTES, report
from boxes.broker.guard import sweep
from boxes.broker.order import Load, Look, Open, Pull, Refusal, Run, parse
from boxes.broker.pulling import pull
from boxes.broker.running import Caller, Running
from boxes.broker.settings import Settings
from boxes.broker.terminal import OpenTerminal
from boxes.cdi.finding import list_names

ORDER_SECONDS = 10.0
LOADING = Path("/run/nodewise/loading")
WAIT_SECONDS = 2 * LOAD_SECONDS
"""How long a caller waits for others that bring images: one of them may take half of that."""
_AGAIN_SECONDS = 0.05
_CREDENTIALS = struct.Struct("3i")
_BRIEF = 1 << 16
_OWN_MODE = 0o600


def serve(connection: socket.socket, settings: Settings) -> None:
    """Carry out the one order of a caller and tell it what came of it."""
    with suppress(OSError):  # it has hung up
        try:
            _serve(connection, settings)
        except Refusal as error:
            connection.sendall(report({"refused": error.message, "remedy": error.remedy}))
        except EngineError as error:
            connection.sendall(report({"failed": f"Docker says: {error.message}"}))
        except Exception as error:  # whatever it is, the caller has to hear of an end
            connection.sendall(report({"failed": f"the broker of boxes cannot go on: {error or type(error).__name__}"}))


def _serve(connection: socket.socket, settings: Settings) -> None:
    uid, gid = _who(connection, settings)
    line, file = _read_order(connection)
    order = parse(line)
    engine = Engine(settings.docker)
    if isinstance(order, Open):
        OpenTerminal(engine, order, connection, f"{uid}:{gid}").run()
        return
    _check(order, settings)
    if isinstance(order, Look):
        devices = sorted(list_names(settings.cdi))
        told = {"there": _is_there(engine, order.image), "pulls": True, "devices": devices}
        connection.sendall(report(told))
    elif isinstance(order, Load):
        _load(engine, order, file)
        connection.sendall(report({"loaded": order.image}))
    elif isinstance(order, Pull):
        _pull(engine, order, connection)
        connection.sendall(report({"pulled": order.image}))
    else:
        file, folder = _folder(file, uid, settings)
        if not _is_there(engine, order.image):
            raise Refusal(f"Docker does not have the image {order.image}", "load it before")
        sweep(engine)
        Running(engine, settings, order, Caller(connection, uid, gid, folder, file)).run()


def _who(connection: socket.socket, settings: Settings) -> tuple[int, int]:
    """The user and the group of the caller, as the kernel knows them."""
    _, uid, gid = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if uid < settings.least_uid or gid < settings.least_uid:
        raise Refusal("boxes are not for root", "run the NodeManager as a user of its own")
    return uid, gid


def _read_order(connection: socket.socket) -> tuple[bytes, int | None]:
    """The line of the order and the open file that came with it."""
    deadline = time.monotonic() + ORDER_SECONDS
    said, file = b"", None
    try:
        while b"\n" not in said:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            piece, files, _, _ = socket.recv_fds(connection, _BRIEF, 1)
            if files:
                file = files[0]
            if not piece or len(said) > MOST_ORDER_BYTES:
                raise Refusal("the order has no end" if not piece else "the order is too long")
            said += piece
    except TimeoutError:
        raise Refusal(f"the order did not come within {ORDER_SECONDS:g} s") from None
    connection.settimeout(None)
    line, _, more = said.partition(b"\n")
    if more:
        raise Refusal("an order is one line")
    return line, file


def _check(order: Look | Load | Pull | Run, settings: Settings) -> None:
    if order.image not in settings.allowed_images():
        raise Refusal(f"the image {order.image} is not allowed here", f"an operator allows it in {settings.images}")
    if isinstance(order, Run):
        _check_size(order.memory_mb, settings.most_memory_mb, "MB")
        _check_size(order.vcores, settings.most_vcores, "cores")


def _check_size(asked: int, most: int, unit: str) -> None:
    if asked > most:
        raise Refusal(f"{asked} {unit} are more than a box may have here", f"ask for {most} at most")


def _is_there(engine: Engine, image: str) -> bool:
    try:
        return bool(engine.ask("GET", f"/images/{image}/json")["Id"] == image)
    except EngineError as error:
        if error.status == NOT_FOUND:
            return False
        raise


def _load(engine: Engine, order: Load, file: int | None) -> None:
    if file is None or not stat.S_ISREG(os.fstat(file).st_mode):
        raise Refusal("the order comes without the image's archive", "send an open file with it")
    with os.fdopen(file, "rb") as archive, _alone(LOADING):
        if _is_there(engine, order.image):  # another has brought it meanwhile
            return
        with images.checked(archive, order.image) as content:
            engine.load(images.pieces(content))
    if not _is_there(engine, order.image):
        raise Refusal(f"Docker does not make {order.image} of the archive", "write it by `docker save` again")


def _pull(engine: Engine, order: Pull, caller: socket.socket) -> None:
    """One pull of an image at a time: Docker would have a second one wait for the layers of the first one's server."""
    with _alone(LOADING.with_name(f"pulling-{order.image.removeprefix('sha256:')}")):
        if _is_there(engine, order.image):  # another has brought it meanwhile
            return
        pull(engine, order, caller)
    if not _is_there(engine, order.image):
        raise Refusal(f"Docker does not make {order.image} of its layers", "use Docker's own store of images")


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """One at a time holds the file: of all loads one, as each takes the room of its image twice for a while.

    Who may open the file, if only to read, could hold it for ever. Refusal when it is not free within WAIT_SECONDS.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _OWN_MODE)
    try:
        os.fchmod(lock, _OWN_MODE)  # an earlier version let others read it
        _take(lock, place)
        yield
    finally:
        os.close(lock)


def _take(lock: int, place: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Refusal(
                    f"others have been bringing images to this node for {WAIT_SECONDS:g} s and are not done",
                    f"submit it again later; on the node, `fuser -v {place}` shows who they are",
                ) from None
            time.sleep(_AGAIN_SECONDS)


def _folder(file: int | None, uid: int, settings: Settings) -> tuple[int, str]:
    """The folder whose open file came with the order, opened by the broker, and its path.

    The caller has opened it, so it may. That it is its owner's and lies where YARN's containers work keeps a box to
    what is the caller's own.
    """
    if file is None or not stat.S_ISDIR(os.fstat(file).st_mode):
        raise Refusal("the order comes without a folder", "send an open folder with it")
    path = _path_of(file)
    if os.fstat(file).st_uid != uid:
        raise Refusal(f"{path} is not its caller's", "send a folder of your own")
    _check_place(path, settings)
    own = _open_again(file, path)
    _check_place(_path_of(own), settings)
    return own, str(_path_of(own))


def _check_place(path: Path, settings: Settings) -> None:
    if not any(path.is_relative_to(allowed) and path != Path(allowed) for allowed in settings.folders):
        raise Refusal(f"{path} is not where boxes may work", f"use a folder below {' or '.join(settings.folders)}")


def _open_again(file: int, path: Path) -> int:
    """The same folder, as the broker sees it.

    A NodeManager that systemd confines has mounts of its own, and the kernel mounts nothing from those elsewhere.
    Whatever else is at that path, the caller does not learn of it.
    """
    refused = Refusal(f"{path} is not the same for its caller and for others", "use a folder that all see alike")
    try:
        own = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        raise refused from None
    stricter = os.fstatvfs(file).f_flag & ~os.fstatvfs(own).f_flag & (os.ST_RDONLY | os.ST_NOEXEC)
    if stricter or not os.path.samestat(os.fstat(own), os.fstat(file)):
        raise refused
    return own


def _path_of(file: int) -> Path:
    path = Path(f"/proc/self/fd/{file}").readlink()
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise Refusal("the folder's name is not UTF-8", "use another folder") from None
    return path
