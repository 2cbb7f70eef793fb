"""What every lifecycle works on: synthetic data of the real size, and a scripted model that answers at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dataclaw.proxy.wire import message_text
from pytest_dataclaw.testing.scenario import Answer, Scenario, ToolCalls

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_dataclaw.testing.model_server import ModelServer

MODEL = "scripted"
PROMPT = "How many rows has ./database/table_00.csv? Answer with the number alone."
ANSWER = "54000"
SESSION_SECONDS = 600
"""Far more than any lifecycle takes."""

_TABLES = 17
_ROW = "{number},company {number},manufacture of machines,2022,31/12/2022 0:00:00,48.1250\n"
_JUDGED = '{"scores": {"match": 1}, "total": 1, "reason": "the same number"}'


def make_data(folder: Path) -> list[Path]:
    """Write 17 CSV files of about 69 MB together into a new folder; return them."""
    folder.mkdir()
    rows = "".join(_ROW.format(number=number) for number in range(int(ANSWER)))
    files = [folder / f"table_{number:02}.csv" for number in range(_TABLES)]
    for file in files:
        file.write_text(rows, encoding="utf-8")
    return files


def scenario() -> Scenario:
    """Return what the model does: a tool call that reads the data, an answer, and as the judge a verdict."""
    count = ToolCalls([("exec", {"command": "wc -l database/table_00.csv"})])
    return Scenario(count, Answer(ANSWER), Answer(_JUDGED))


def check_requests(server: ModelServer) -> None:
    """Exit, saying why, unless the model was asked three times and the tool call had found the data."""
    requests = server.requests
    if len(requests) != 3:
        raise SystemExit(f"the model was asked {len(requests)} times, not 3")
    result = message_text(requests[1].messages[-1]["content"])
    if not result.startswith(f"{ANSWER} database/"):
        raise SystemExit(f"the tool call did not find the data: {result!r}")
