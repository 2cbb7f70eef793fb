"""The records of a run on disk: the latest of each trial, damaged ones told apart."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from record_samples import errored, solved, unsolved

from pytest_dataclaw.errors import RecordError
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.record.index import RunIndex, read_record
from pytest_dataclaw.record.store import TrialFolder

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_dataclaw.model.result import Record

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def _store(output: Path, record: Record, minutes: int = 0, folder_run: str = "") -> Path:
    started = START + timedelta(minutes=minutes)
    key = TrialKey(folder_run or record.run_id, record.node_id, record.task_id, record.repeat)
    return TrialFolder.create(output, key, record.setup.model, started).finish(
        replace(record, started_at=started.isoformat())
    )


def test_latest_record_of_each_trial(tmp_path: Path) -> None:
    _store(tmp_path, errored(1))
    retried = _store(tmp_path, solved(1), minutes=5)
    _store(tmp_path, unsolved(2), minutes=1)
    repeat = _store(tmp_path, solved(2, repeat=2), minutes=2)
    latest = RunIndex(tmp_path, "ab12cd34").latest()
    assert set(latest) == {
        "tasks/task_001.md::task_001",
        "tasks/task_002.md::task_002",
        "tasks/task_002.md::task_002[run2]",
    }
    assert latest["tasks/task_001.md::task_001"].path == retried
    assert latest["tasks/task_001.md::task_001"].record.outcome.value == "solved"
    assert latest["tasks/task_002.md::task_002[run2]"].path == repeat


def test_of_equal_starts_the_file_written_last_is_taken(tmp_path: Path) -> None:
    # A trial judged again in another folder keeps its start.
    first, second = _store(tmp_path, errored(1)), _store(tmp_path, solved(1))
    os.utime(first, ns=(0, 10**18 + 1))
    os.utime(second, ns=(0, 10**18))
    assert RunIndex(tmp_path, "ab12cd34").latest()["tasks/task_001.md::task_001"].path == first


def test_other_runs_and_unfinished_trials_do_not_count(tmp_path: Path) -> None:
    _store(tmp_path, replace(solved(1), run_id="ffffffff"))
    _store(tmp_path, replace(solved(2), run_id="xab12cd34"))
    TrialFolder.create(tmp_path, TrialKey("ab12cd34", "n", "task_003"), "oracle", START)
    (tmp_path / "summary_oracle.json").write_text("{}", encoding="utf-8")
    index = RunIndex(tmp_path, "ab12cd34")
    assert index.latest() == {}
    assert index.damaged == []


def test_no_output_folder_is_an_empty_run(tmp_path: Path) -> None:
    assert RunIndex(tmp_path / "absent", "ab12cd34").latest() == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "cannot be read"),
        ('{"schema": 1, ', "cannot be read"),
        ('{"schema": NaN}', "NaN is no JSON"),
        ('{"schema": 1}', "run_id: missing"),
        ("[" * 100_000, "cannot be read"),
    ],
    ids=["empty", "torn", "NaN", "incomplete", "nested"],
)
def test_damaged_records_are_named_not_skipped(tmp_path: Path, content: str, message: str) -> None:
    good = _store(tmp_path, solved(1))
    bad = _store(tmp_path, solved(2))
    bad.write_text(content, encoding="utf-8")
    index = RunIndex(tmp_path, "ab12cd34")
    assert [stored.path for stored in index.latest().values()] == [good]
    assert [str(error).startswith(f"{bad}: ") and message in str(error) for error in index.damaged] == [True]
    index.latest()
    assert len(index.damaged) == 1
    with pytest.raises(RecordError, match=message):
        read_record(bad)


def test_bytes_that_are_no_text_are_damage(tmp_path: Path) -> None:
    bad = _store(tmp_path, solved(2))
    bad.write_bytes(b"\xff\xfe\x00")
    index = RunIndex(tmp_path, "ab12cd34")
    assert (index.latest(), len(index.damaged)) == ({}, 1)


def test_a_record_of_another_run_in_the_runs_folder_is_damage(tmp_path: Path) -> None:
    _store(tmp_path, replace(solved(1), run_id="ffffffff"), folder_run="ab12cd34")
    index = RunIndex(tmp_path, "ab12cd34")
    assert index.latest() == {}
    assert "'ffffffff' is not the run of its folder, 'ab12cd34'" in str(index.damaged[0])


def test_an_absent_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"record\.json: cannot be read"):
        read_record(tmp_path / "record.json")


def test_a_newer_schema_is_named(tmp_path: Path) -> None:
    path = _store(tmp_path, solved(1))
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"schema": 2}), encoding="utf-8")
    with pytest.raises(RecordError, match="schema: version 2"):
        read_record(path)
