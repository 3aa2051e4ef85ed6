"""A job that classifies images: where they are, which rows they become, and what starts a worker."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from hadoop.client.yarn import Launch
from jobs.application.coordinator import Attempt, Seat
from jobs.images import rows
from jobs.images.rows_size import LARGEST_ROW
from jobs.itemwork.coordinator import ItemCoordinator
from jobs.itemwork.deciding import largest_row_of
from jobs.kinds.classify.launches import Launches
from jobs.kinds.classify.listing import ImageListing
from jobs.kinds.classify.settings import UNIT, ClassifySettings
from jobs.reports.report import SEEDED, Weights


class Classify(ItemCoordinator):
    """One attempt at one job."""

    unit = UNIT

    def __init__(self, attempt: Attempt) -> None:
        settings = ClassifySettings.from_json(attempt.spec.settings)
        super().__init__(attempt, settings, ImageListing(attempt.filesystem, f"{attempt.spec.staging}/apart"))
        largest_row = min(LARGEST_ROW, largest_row_of(settings))
        self._launches = Launches(attempt.filesystem, attempt.spec, settings, largest_row)
        self._network = settings.network

    def launches(self) -> Callable[[Seat], Launch]:
        """A worker with the network and its engine."""
        self._launches.publish()
        return self._launches.of

    def find_flaw(self, schema: pa.Schema) -> str:
        """Rows are of classes, or of tensors."""
        return rows.find_flaw(schema)

    def weights(self) -> Weights:
        """The file that the numbers came from, as the user called it."""
        file = self._network.file
        return Weights("seeded", SEEDED) if file is None else Weights(file.name.partition("-")[2])
