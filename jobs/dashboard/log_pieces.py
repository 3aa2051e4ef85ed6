"""A job's logs piece by piece: which containers there are, and what one of them wrote after a certain byte."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hadoop.errors import HadoopError
from hadoop.rest.container_logs import read_since
from hadoop.rest.resourcemanager import ResourceManager
from infosvc.wire.errors import InvalidInput, NotFound
from jobs.application.logs import STREAMS, is_container_of, parse_started
from jobs.application.status import ContainerStatus
from jobs.dashboard.answers import JobContainer, LogContainers, LogPiece
from jobs.dashboard.sources.lines import MOST_BYTES, whole_lines
from jobs.dashboard.sources.site import Place
from jobs.dashboard.sources.yarn import Known

MOST_TAIL = 2 * 1024 * 1024
"""Of a log that is asked of its node at a time: whoever may read could fill this service's memory by a longer one."""
MOST_OF_MASTER = 16 * 1024 * 1024
"""Of what a master prints, in which it notes its workers."""


def containers(
    place: Place, job_id: str, node_addresses: Collection[str], told: Iterable[ContainerStatus] = ()
) -> list[JobContainer]:
    """The application masters of a job, and the containers `told` by them, or noted in what they print; HadoopError.

    Masters of the version before list none and note their workers in their output, and one whose node does not answer
    hides those that it has noted. What a job tells is its owner's word, so whatever is not a container of this job, or
    not at one of the `node_addresses` of YARN, is passed over: this service must neither ask for other pages nor show
    what others print.
    """
    found: dict[str, JobContainer] = {}
    manager = ResourceManager(place.managers, place.user)
    masters = manager.master_containers(job_id)
    for container_id, address in masters:
        found[container_id] = _container(container_id, address, "master")
    listed = [one for one in told if is_container_of(job_id, one.container_id)]
    for one in listed:
        if one.log_address in node_addresses:
            found.setdefault(one.container_id, _container(one.container_id, one.log_address, one.role))
    for container_id, address in () if listed else masters:
        try:
            piece = read_since(container_id, manager.nodemanager(address), "stdout", place.user, 0, MOST_OF_MASTER)
        except HadoopError:
            continue
        for worker, where in parse_started(piece.content.decode(errors="replace"), job_id) if piece else ():
            if where in node_addresses:
                found.setdefault(worker, _container(worker, where, "worker"))
    return list(found.values())


def containers_answer(known: Known, found: list[JobContainer]) -> LogContainers:
    """The containers as they are answered."""
    application = known.application
    return LogContainers(application.application_id, application.has_ended, tuple(STREAMS), tuple(found))


def piece(
    place: Place, known: Known, found: list[JobContainer], container_id: str, stream: str, offset: int
) -> LogPiece:
    """What a container wrote to `stream` from byte `offset` on; NotFound for a strange one, HadoopError.

    A log that was begun anew is answered from its beginning: its `offset` then is 0. What lies more than MOST_TAIL
    before the end is passed over: its `offset` then is larger than the one that was asked for.
    """
    if stream not in STREAMS:
        raise InvalidInput(f"stream is {stream!r}: it must be one of {', '.join(STREAMS)}", "stream")
    one = next((each for each in found if each.container_id == container_id), None)
    if one is None:
        raise NotFound(f"{known.application.application_id} has no container {container_id!r}", "container")
    node = ResourceManager(place.managers).nodemanager(one.address)
    read = read_since(container_id, node, stream, place.user, offset, MOST_TAIL)
    if read is None and place.collects_logs and known.application.has_ended:
        raise NotFound(
            f"{one.node_name} does not have the {stream} of {container_id} any more, as YARN has collected it",
            "container",
            remedy=f"`nodewise job logs {known.application.application_id}` reads it",
        )
    begin, content = (offset, b"") if read is None else (read.begin, read.content)
    shown = whole_lines(content, MOST_BYTES, known.application.has_ended)
    return LogPiece(
        job_id=known.application.application_id,
        ended=known.application.has_ended,
        container_id=container_id,
        node_name=one.node_name,
        stream=stream,
        offset=begin,
        next=begin + len(shown),
        more=len(content) > MOST_BYTES,
        text=shown.decode(errors="replace"),
    )


def _container(container_id: str, address: str, role: str) -> JobContainer:
    return JobContainer(container_id, address.rpartition(":")[0], role, address)
