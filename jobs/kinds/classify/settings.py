"""What a job that classifies images is told: how any items are divided, and what users may say of its network."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.application.devices.device_options import DeviceOptions
from jobs.application.options import option
from jobs.application.package import WORKER_PYTHON, WORKER_PYTHON_VARIABLE
from jobs.division.readings import Program
from jobs.images.rows_size import ROW_BYTES
from jobs.itemwork.settings import ItemSettings
from jobs.worker.settings import InferenceOptions

UNIT = "images"
"""What an item is called, in the plural."""


@dataclass(frozen=True, kw_only=True)
class ClassifySettings(DeviceOptions, ItemSettings, InferenceOptions):
    """All of them, in words of images."""

    input: str = option(help="Folder of images in HDFS.")
    worker_python: str = option(
        str(WORKER_PYTHON),
        help="Python with the engine on the nodes [default: that of this installation].",
        envvar=WORKER_PYTHON_VARIABLE,
        show_default=False,
    )
    row_bytes: int = ROW_BYTES

    @property
    def program(self) -> Program:
        """Engine and model together, and the images per inference."""
        return Program(self.network.program, self.batch)
