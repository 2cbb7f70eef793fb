"""A web task end to end: what it reached and what was refused is in the record; the search key is nowhere on disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from harness import SUM_STEPS

if TYPE_CHECKING:
    from harness import Bench

pytestmark = pytest.mark.docker

KEY = "brave-canary-0123456789"
SHOW_KEY = """
import pathlib
text = (pathlib.Path.home() / ".openclaw/openclaw.json").read_text()
print("seen:", text[text.index('"apiKey"', text.index("webSearch")):][:60])
"""
TRY_METADATA = """
import urllib.error, urllib.request
try:
    urllib.request.urlopen("http://169.254.169.254/latest/meta-data/")
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


@pytest.fixture(autouse=True)
def docker_image() -> None:
    """Skip, saying what is missing, where no engine answers or the image is absent."""
    from contextlib import closing

    from pytest_dataclaw.errors import DataclawError
    from pytest_dataclaw.provision.engine import connect
    from pytest_dataclaw.provision.image import LOCAL_IMAGE, inspect

    try:
        with closing(connect()) as client:
            inspect(client, LOCAL_IMAGE)
    except DataclawError as error:
        pytest.skip(str(error))


def test_openclaw_with_a_search_key(bench: Bench) -> None:
    bench.env["BRAVE_API_KEY"] = KEY
    bench.add(steps=(SHOW_KEY, TRY_METADATA, *SUM_STEPS), timeout=120, web=True)
    result = bench.run("--dataclaw-model=oracle", "--dataclaw-agent=openclaw", "-p", "no:xdist")
    assert result.code == 0, result.out
    (record,) = result.records()
    assert record["extra"]["hosts"] == {}
    assert record["extra"]["refused_hosts"] == {"169.254.169.254": 1}
    (folder,) = (path.parent for path in bench.output.glob("*/*/record.json"))
    (row,) = map(json.loads, (folder / "egress.jsonl").read_text("utf-8").splitlines())
    assert (row["host"], row["status"], row["error"]) == (
        "169.254.169.254",
        403,
        "169.254.169.254 is not a public address",
    )
    for name in ("chat.jsonl", "exchanges.jsonl"):
        text = (folder / name).read_text("utf-8")
        assert "seen:" in text
        assert "[redacted:BRAVE_API_KEY]" in text
    assert KEY not in result.out
    files = [path for path in bench.root.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert "1 trials, 0 requests to 0 hosts, 1 refused" in result.out
    assert "web search off" not in result.out


def test_without_a_key_the_summary_says_that_search_was_off(bench: Bench) -> None:
    bench.add(timeout=120, web=True)
    bench.add(timeout=120)
    result = bench.run("--dataclaw-model=oracle", "--dataclaw-agent=openclaw", "-n2")
    assert result.code == 0, result.out
    web, sealed = result.records()
    assert (web["extra"]["hosts"], web["extra"]["refused_hosts"]) == ({}, {})
    assert "hosts" not in sealed["extra"]
    assert "web search off: BRAVE_API_KEY is not set" in result.out
    assert result.summary()["run"]["web_search_off"] == "BRAVE_API_KEY is not set"
