"""The file of an incomplete run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.errors import RecordError
from pytest_dataclaw.record.progress import Progress, differences, progress_path, remove

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_dataclaw.model.task import Json

PROGRESS = Progress(
    run_id="ab12cd34",
    model="vendor/model-1",
    parameters={"model": "vendor/model-1", "runs": 2, "process": "unsolved"},
    planned=["tasks/a.md::a", "tasks/a.md::a[run2]"],
    started_at="2026-01-02T03:04:05+00:00",
)


def test_there_and_back(tmp_path: Path) -> None:
    path = progress_path(tmp_path / "output", "oracle")
    PROGRESS.write(path)
    assert path == tmp_path / "output" / "progress_oracle.json"
    assert Progress.read(path) == PROGRESS
    remove(path)
    assert Progress.read(path) is None
    remove(path)


def test_a_selection_has_its_own_file(tmp_path: Path) -> None:
    paths = {progress_path(tmp_path, "oracle", selection) for selection in ("", "1a2b", "-k easy", "-m easy")}
    assert len(paths) == 4
    assert tmp_path / "progress_oracle_1a2b.json" in paths
    assert {path.parent for path in paths} == {tmp_path}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 9}, "schema: version 9"),
        ({"run_id": 3}, "run_id: expected a string"),
        ({"planned": "x"}, "planned: expected a list"),
        ({"planned": [1]}, r"planned\[0\]: expected a string"),
        ({"parameters": []}, "parameters: expected an object"),
        ({"new": 1}, "new: unknown field"),
    ],
)
def test_damage_is_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = tmp_path / "progress_oracle.json"
    PROGRESS.write(path)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(RecordError, match=rf"progress_oracle\.json: {message}"):
        Progress.read(path)


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "progress_oracle.json"
    path.write_text('{"schema"', encoding="utf-8")
    with pytest.raises(RecordError, match=r"progress_oracle\.json: cannot be read"):
        Progress.read(path)


def test_differences_are_in_words() -> None:
    old: dict[str, Json] = {"judge": "rules", "runs": 1, "same": [1, {"b": 2, "a": 1}], "gone": None}
    new: dict[str, Json] = {"judge": "深/x", "runs": 2, "same": [1, {"a": 1, "b": 2}], "fresh": True}
    assert differences(old, new) == [
        "fresh: was not set, now true",
        "gone: was null, now not set",
        'judge: was "rules", now "深/x"',
        "runs: was 1, now 2",
    ]
    assert differences(old, dict(old)) == []
