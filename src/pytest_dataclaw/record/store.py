"""Write files that are whole or absent, and lay out the folder of one trial."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_dataclaw.record.codec import to_json
from pytest_dataclaw.record.known_files import process_json, score_json, usage_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

    from pytest_dataclaw.model.result import Record
    from pytest_dataclaw.model.run import TrialKey

    Scrub: TypeAlias = Callable[[str], str]

RECORD_NAME = "record.json"
_MAX_SLUG_BYTES = 120


def slug(name: str) -> str:
    """Make a file name of any text; a short hash keeps apart names that would otherwise become one."""
    safe = "".join(char if char.isalnum() or char in "._-" else "-" for char in name).lstrip(".-")
    if safe == name and safe and len(safe.encode()) <= _MAX_SLUG_BYTES:
        return safe
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    kept = safe.encode("utf-8", "ignore")[: _MAX_SLUG_BYTES - len(digest) - 1].decode("utf-8", "ignore")
    return f"{kept}-{digest}" if kept else digest


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file atomically and durably: after a crash there is the old file or the new one, whole.

    Lone surrogates, which UTF-8 cannot hold, are written as `\\udXXX`: in JSON that is their own escape.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_json(path: Path, obj: Any, scrub: Scrub = str) -> None:
    """Write one JSON document as `write_text` does; ValueError for NaN and infinity, which JSON does not have."""
    write_text(path, scrub(json.dumps(obj, indent=2, ensure_ascii=False, allow_nan=False)) + "\n")


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]], scrub: Scrub = str) -> None:
    """Write JSON Lines as `write_text` does, one row a line."""
    write_text(path, "".join(scrub(json.dumps(row, ensure_ascii=False, allow_nan=False)) + "\n" for row in rows))


def _sync_folder(folder: Path) -> None:
    """Make a rename or a new entry in a folder durable."""
    if os.name == "nt":  # folders cannot be opened there; NTFS keeps its own journal
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class TrialFolder:
    """The folder of one trial; it counts as finished when, and only when, it holds `record.json`."""

    path: Path
    scrub: Scrub = str
    """Takes the secrets out of a text; all that is written to the folder goes through it."""

    @classmethod
    def create(cls, output: Path, key: TrialKey, model: str, started: datetime, scrub: Scrub = str) -> TrialFolder:
        """Make `output/<task_id>/<model>_<YYYYmmdd-HHMMSS>_<run_id>[-r<repeat>][-<n>]`, new in any case."""
        parent = output / slug(key.task_id)
        parent.mkdir(parents=True, exist_ok=True)
        name = f"{slug(model)}_{started:%Y%m%d-%H%M%S}_{key.run_id}"
        if key.repeat > 1:
            name += f"-r{key.repeat}"
        for attempt in count(1):
            path = parent / (name if attempt == 1 else f"{name}-{attempt}")
            with suppress(FileExistsError):
                path.mkdir()
                break
        _sync_folder(parent)
        _sync_folder(output)
        return cls(path, scrub)

    @property
    def journal(self) -> Path:
        """The file to which the proxy appends every exchange."""
        return self.path / "exchanges.jsonl"

    @property
    def egress(self) -> Path:
        """The file to which the proxy appends every request of a web task to the web."""
        return self.path / "egress.jsonl"

    def write_agent_log(self, text: str) -> None:
        """Write what the agent logged."""
        write_text(self.path / "agent.log", self.scrub(text))

    def write_gateway_log(self, text: str) -> None:
        """Write what the agent's gateway logged."""
        write_text(self.path / "gateway.log", self.scrub(text))

    def write_chat(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the agent's own transcript."""
        write_lines(self.path / "chat.jsonl", rows, self.scrub)

    def write_judge_chat(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the exchanges with the judge about the answer."""
        write_lines(self.path / "judge_chat.jsonl", rows, self.scrub)

    def write_judge_process_chat(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the exchanges with the judge about the milestones."""
        write_lines(self.path / "judge_process_chat.jsonl", rows, self.scrub)

    def finish(self, record: Record) -> Path:
        """Write `score.json`, `process_score.json`, `usage.json` and, last, `record.json`; return its path."""
        write_json(self.path / "score.json", score_json(record), self.scrub)
        write_json(self.path / "process_score.json", process_json(record), self.scrub)
        write_json(self.path / "usage.json", usage_json(record), self.scrub)
        path = self.path / RECORD_NAME
        write_json(path, to_json(record), self.scrub)
        return path
