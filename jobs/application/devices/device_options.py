"""What users may say of the GPUs and other devices that each container of a job has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from boxes.cdi.finding import is_name
from boxes.gpus.cards import Wanted
from infosvc.wire.task_spec import GPU_CAPABILITY, GPU_MODEL, MOST_GPUS
from jobs.application.job_spec import Settings
from jobs.application.options import option
from jobs.errors import JobError


@dataclass(frozen=True, kw_only=True)
class DeviceOptions(Settings):
    """The same for all containers; a kind of job that has these options passes them on with each."""

    gpus: int = option(
        0,
        help="GPUs of NVIDIA that each container has for itself, as YARN counts them.",
        least=0,
        most=MOST_GPUS,
        is_late=True,
    )
    gpu_model: str | None = option(
        None,
        help="Words that the model's name of each GPU has, such as T4 or A100  [default: any].",
        metavar="WORDS",
        is_late=True,
    )
    gpu_memory_mb: int | None = option(
        None,
        flag="--gpu-memory",
        help="Memory that each GPU has or more, as 16g, of which the card itself may keep 8 %  [default: any].",
        least=1,
        is_memory=True,
        is_late=True,
    )
    gpu_capability: str | None = option(
        None,
        help="Compute capability of CUDA that each GPU has or more, such as 7.5  [default: any].",
        metavar="X.Y",
        is_late=True,
    )
    devices: Sequence[str] = option(
        (),
        flag="--device",
        help="Device that each container gets with its driver's files, by its name in the CDI files of the node; may "
        "be given several times.",
        metavar="VENDOR/CLASS=NAME",
        is_late=True,
    )

    @property
    def wanted_gpus(self) -> Wanted:
        """The GPUs of each container, as nodes and cards are judged by."""
        return Wanted(self.gpus, self.gpu_model or "", self.gpu_memory_mb or 0, self.gpu_capability or "")

    def check_devices(self) -> None:
        """JobError names what is no model, capability or device, or is said of GPUs where none is asked for."""
        if not self.gpus and self.wanted_gpus.is_picky:
            raise JobError("a model, memory or capability is asked of GPUs, and no GPU", remedy="give --gpus, too")
        _check_form("--gpu-model", self.gpu_model, GPU_MODEL, "give words of its name, such as T4")
        _check_form("--gpu-capability", self.gpu_capability, GPU_CAPABILITY, "give a number such as 7.5")
        for one in self.devices:
            if not is_name(one):
                raise JobError(f"--device {one} is not VENDOR/CLASS=NAME", remedy="name one such as nvidia.com/gpu=0")


def _check_form(flag: str, text: str | None, form: str, remedy: str) -> None:
    if text is not None and not re.fullmatch(form, text, re.ASCII):
        raise JobError(f"{flag} is {text!r}", remedy=remedy)
