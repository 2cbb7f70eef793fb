"""Find the records of a run on disk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import RecordError
from pytest_dataclaw.record.codec import from_json
from pytest_dataclaw.record.reader import load_json
from pytest_dataclaw.record.store import RECORD_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_dataclaw.model.result import Record


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record and the file it lies in."""

    path: Path
    record: Record


def read_record(path: Path) -> Record:
    """Read one `record.json`; RecordError names the file and the field."""
    document = load_json(path)
    try:
        return from_json(document)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


class RunIndex:
    """The records of one run below an output folder; those that cannot be used are kept in `damaged`."""

    def __init__(self, output: Path, run_id: str) -> None:
        self.damaged: list[RecordError] = []
        self._output = output
        self._run_id = run_id
        self._folder = re.compile(rf".*_\d{{8}}-\d{{6}}_{re.escape(run_id)}(-r\d+)?(-\d+)?")

    def latest(self) -> dict[str, StoredRecord]:
        """Read the run's records anew and return the latest of each node id (which tells repeats apart)."""
        self.damaged = []
        found: dict[str, tuple[tuple[str, int], StoredRecord]] = {}
        for path in sorted(self._output.glob(f"*/*/{RECORD_NAME}")):
            if not self._folder.fullmatch(path.parent.name):
                continue
            try:
                record = self._read(path)
            except RecordError as error:
                self.damaged.append(error)
                continue
            # A trial that was judged again keeps its start; its file is the newer one.
            age = (record.started_at, path.stat().st_mtime_ns)
            if record.node_id not in found or age >= found[record.node_id][0]:
                found[record.node_id] = (age, StoredRecord(path, record))
        return {node_id: stored for node_id, (_, stored) in found.items()}

    def _read(self, path: Path) -> Record:
        record = read_record(path)
        if record.run_id != self._run_id:
            raise RecordError(f"{path}: run_id: {record.run_id!r} is not the run of its folder, {self._run_id!r}")
        return record
