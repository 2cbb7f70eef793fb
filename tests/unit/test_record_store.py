"""Files that are whole or absent, and the folder of a trial."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from record_samples import errored, full, solved, unsolved

from pytest_dataclaw.model.result import EndReason, Record, Scores
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.record.index import read_record
from pytest_dataclaw.record.store import TrialFolder, slug, write_json, write_lines, write_text

KEY = TrialKey("ab12cd34", "tasks/task_001.md::task_001", "task_001")
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


@pytest.mark.parametrize("name", ["oracle", "gpt-5.4", "企业_1", "a.b-c_D9"])
def test_a_safe_name_is_kept(name: str) -> None:
    assert slug(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../../etc", "a b", "a\x00b", "x" * 300, "企" * 200, "-k", "\ud800"]
)
def test_any_text_becomes_one_safe_name(name: str, tmp_path: Path) -> None:
    safe = slug(name)
    assert not safe.startswith((".", "-"))
    assert len(safe.encode()) <= 120
    (tmp_path / safe).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [safe]


def test_names_that_would_become_one_stay_apart() -> None:
    names = ["vendor/model", "vendor model", "vendor:model", "vendor-model", "/vendor-model", "vendor-model/"]
    assert len({slug(name) for name in names}) == len(names)
    assert re.fullmatch(r"vendor-model-[0-9a-f]{8}", slug("vendor/model"))
    assert slug("x" * 300) != slug("x" * 301)


def test_a_write_that_fails_before_the_rename_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"old": 1})

    def fail(*_: object) -> None:
        raise OSError("power cut")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="power cut"):
        write_json(path, {"new": 2})
    assert json.loads(path.read_text(encoding="utf-8")) == {"old": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_content_is_on_disk_before_the_rename_and_the_rename_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, rename = os.fsync, Path.replace

    def spy_fsync(descriptor: int) -> None:
        calls.append("fsync folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "fsync file")  # noqa: PTH112 - follows the link
        fsync(descriptor)

    def spy_rename(self: Path, target: Path) -> Path:
        calls.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(Path, "replace", spy_rename)
    write_text(tmp_path / "a", "text")
    assert calls == ["fsync file", "rename", "fsync folder"]


def test_files_are_as_readable_as_the_umask_says(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        write_text(tmp_path / "a", "text")
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


def test_json_keeps_text_readable_and_refuses_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"市": "深圳"})
    assert "深圳" in (tmp_path / "a.json").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "b.json", {"x": float("nan")})
    assert not (tmp_path / "b.json").exists()


def test_lone_surrogates_of_agents_survive(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"answer": "x\ud83dy"})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"answer": "x\ud83dy"}


def test_lines_are_one_row_each(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [{"a": "1\n2"}, {"b": None}])
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"a": "1\n2"}, {"b": None}]
    write_lines(tmp_path / "b.jsonl", [])
    assert (tmp_path / "b.jsonl").read_text(encoding="utf-8") == ""


def test_folder_names(tmp_path: Path) -> None:
    output = tmp_path / "output"
    first = TrialFolder.create(output, KEY, "oracle", STARTED)
    assert first.path == output / "task_001" / "oracle_20260102-030405_ab12cd34"
    assert first.journal == first.path / "exchanges.jsonl"
    second = TrialFolder.create(output, KEY, "oracle", STARTED)
    third = TrialFolder.create(output, KEY, "oracle", STARTED)
    assert [second.path.name, third.path.name] == [f"{first.path.name}-2", f"{first.path.name}-3"]
    repeat = TrialFolder.create(output, replace(KEY, repeat=2), "vendor/m", STARTED)
    assert re.fullmatch(r"vendor-m-[0-9a-f]{8}_20260102-030405_ab12cd34-r2", repeat.path.name)


def test_a_task_id_cannot_leave_the_output_folder(tmp_path: Path) -> None:
    folder = TrialFolder.create(tmp_path / "output", replace(KEY, task_id="../../x"), "oracle", STARTED)
    assert folder.path.parent.parent == tmp_path / "output"


def _finished(tmp_path: Path, record: Record) -> dict[str, dict[str, object]]:
    folder = TrialFolder.create(tmp_path, KEY, "oracle", STARTED)
    assert folder.finish(record) == folder.path / "record.json"
    names = ("score.json", "process_score.json", "usage.json")
    assert {path.name for path in folder.path.iterdir()} == {*names, "record.json"}
    assert read_record(folder.path / "record.json") == record
    return {name: json.loads((folder.path / name).read_text(encoding="utf-8")) for name in names}


def test_known_files_of_an_unsolved_trial(tmp_path: Path) -> None:
    files = _finished(tmp_path, full())
    assert files["score.json"] == {
        "task_id": "task_007",
        "score": 0.5,
        "max_score": 1.0,
        "grading_type": "llm_judge",
        "breakdown": {"part_0": 1.0, "part_1": 0.0, "total": 0.5},
        "notes": "",
        "outcome": "unsolved",
        "end_reason": "answered",
        "judge": "vendor/judge-1",
    }
    process = files["process_score.json"]
    assert set(process) == {"gpr", "tgpr"}
    assert process["gpr"] == {
        "gpr": 0.5,
        "milestones_total": 2,
        "milestones_achieved": 1,
        "break_point": 1,
        "chain_summary": "first milestone not reached: median (absent)",
        "details": [
            {"key": "企业数量", "achieved": True, "evidence_type": "value", "first_step": 6, "reason": "seen"},
            {"key": "median", "achieved": False, "evidence_type": "none", "first_step": None, "reason": "absent"},
        ],
    }
    # N = 4, reached at turn 6: two late, 0.9 ** 2 = 0.81.
    tgpr = process["tgpr"]
    assert isinstance(tgpr, dict)
    assert [row["delay"] for row in tgpr.pop("details")] == [2, None]
    assert tgpr == {
        "tgpr": 0.405,
        "tpe": 0.81,
        "tpe_achieved": 0.81,
        "gpr": 0.5,
        "gamma": 0.9,
        "s_gold": 4,
        "milestones_total": 2,
        "milestones_achieved": 1,
    }
    usage = files["usage.json"]
    judge = usage.pop("judge")
    assert isinstance(judge, dict)
    assert (judge["total_tokens"], judge["cost_usd"]) == (55, None)
    assert usage == {
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_tokens": 10,
        "cache_write_tokens": 5,
        "reasoning_tokens": 2,
        "total_tokens": 120,
        "cost_usd": 0.25,
        "request_count": 3,
        "elapsed_time": 12.5,
        "model_seconds": 4.5,
        "waiting_seconds": 1.5,
    }


def test_known_files_of_a_solved_trial(tmp_path: Path) -> None:
    files = _finished(tmp_path, solved(1, setup=replace(full().setup, judge="rules")))
    assert files["process_score.json"] == {"efficiency": {"s_agent": 8, "s_gold": 4, "efficiency": 0.5}}
    assert (files["score.json"]["score"], files["score.json"]["grading_type"]) == (1.0, "rules")


def test_known_files_of_an_errored_trial_hold_no_score(tmp_path: Path) -> None:
    files = _finished(tmp_path, errored(1, EndReason.JUDGE_ERROR))
    assert files["score.json"]["score"] is None
    assert files["score.json"]["breakdown"] == {"total": None}
    assert files["process_score.json"] == {}


def test_unsolved_without_judged_milestones_has_no_process_scores(tmp_path: Path) -> None:
    assert _finished(tmp_path, unsolved(1))["process_score.json"] == {}


def test_break_point_is_none_where_every_milestone_was_reached(tmp_path: Path) -> None:
    record = replace(full(), milestones=full().milestones[:1], scores=Scores(0.5, gpr=1.0, tpe=0.81, tgpr=0.81))
    gpr = _finished(tmp_path, record)["process_score.json"]["gpr"]
    assert isinstance(gpr, dict)
    assert (gpr["break_point"], gpr["chain_summary"]) == (None, "every milestone was reached")


def test_side_files_have_their_known_names(tmp_path: Path) -> None:
    folder = TrialFolder.create(tmp_path, KEY, "oracle", STARTED)
    folder.write_agent_log("agent")
    folder.write_gateway_log("gateway")
    folder.write_chat([{"a": 1}])
    folder.write_judge_chat([{"b": 1}])
    folder.write_judge_process_chat([{"c": 1}])
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.path.iterdir()} == {
        "agent.log": "agent",
        "gateway.log": "gateway",
        "chat.jsonl": '{"a": 1}\n',
        "judge_chat.jsonl": '{"b": 1}\n',
        "judge_process_chat.jsonl": '{"c": 1}\n',
    }


def test_secrets_are_taken_out_of_all_that_is_written(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path, lambda text: text.replace("s3cret", "[redacted]"))
    rows = [{"text": "it is s3cret"}]
    folder.write_agent_log("s3cret")
    folder.write_gateway_log("s3cret")
    folder.write_chat(rows)
    folder.write_judge_chat(rows)
    folder.write_judge_process_chat(rows)
    folder.finish(solved(1, detail="s3cret", answer="s3cret"))
    texts = [path.read_text("utf-8") for path in tmp_path.iterdir()]
    assert len(texts) == 9
    assert not any("s3cret" in text for text in texts)
    assert sum("[redacted]" in text for text in texts) == 7
    assert read_record(tmp_path / "record.json").answer == "[redacted]"


def test_the_record_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = TrialFolder.create(tmp_path, KEY, "oracle", STARTED)
    written: list[str] = []
    rename = Path.replace

    def spy(self: Path, target: Path) -> Path:
        written.append(target.name)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", spy)
    folder.finish(full())
    assert written[-1] == "record.json"
    assert len(written) == 4


_WRITER = """
import sys
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from record_samples import full
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.record.store import TrialFolder
key = TrialKey("ab12cd34", "n", "task_001")
folder = TrialFolder.create(Path(sys.argv[1]), key, "oracle", datetime(2026, 1, 2, tzinfo=timezone.utc))
number = 0
while True:
    number += 1
    folder.finish(replace(full(), turns=number, answer="x" * 200_000))
    print(number, flush=True)
"""


def test_a_killed_writer_never_leaves_a_torn_record(tmp_path: Path) -> None:
    for attempt in range(5):
        output = tmp_path / str(attempt)
        output.mkdir()
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(output)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "1\n"
            time.sleep(0.013 * attempt)  # dies at another place each time
            writer.send_signal(signal.SIGKILL)
            told = writer.stdout.read().split()
        record = read_record(next(output.glob("*/*/record.json")))
        # What was reported as written is there; the next one may be, whole.
        assert record.turns in {int(told[-1]) if told else 1, (int(told[-1]) if told else 1) + 1}
        assert record.answer == "x" * 200_000
