"""Documents that must not drift from the code or from each other."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_dataclaw.options import OPTIONS, VARIABLES

ROOT = Path(__file__).parents[2]


def _readme(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_two_readmes_have_the_same_commands_and_the_same_headings() -> None:
    english, chinese = _readme("README.md"), _readme("README.zh-CN.md")
    blocks = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

    def commands(text: str) -> list[str]:
        lines = "\n".join(blocks.findall(text)).splitlines()
        return [line.split("  #")[0].split("   ")[0].rstrip() for line in lines]

    assert commands(english) == commands(chinese)
    levels = re.compile(r"^#+ ", re.MULTILINE)
    assert levels.findall(blocks.sub("", english)) == levels.findall(blocks.sub("", chinese))
    spans = re.compile(r"`[^`]+`")
    tables = re.compile(r"^\|.*$", re.MULTILINE)
    assert [spans.findall(row) for row in tables.findall(english)] == [
        spans.findall(row) for row in tables.findall(chinese)
    ]


def test_every_option_and_variable_is_documented() -> None:
    example = (ROOT / ".env.example").read_text("utf-8")
    named = set(re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE))
    assert named == {option.env for option in OPTIONS} | {variable.name for variable in VARIABLES}
    for option in OPTIONS:
        for name in ("README.md", "README.zh-CN.md"):
            assert f"| `{option.flag}` | `{option.env}` |" in _readme(name)


def test_every_upstream_flag_has_its_form_here() -> None:
    for flag in [
        "--model",
        "--judge",
        "--suite",
        "--task",
        "--parallel",
        "--timeout-multiplier",
        "--runs",
        "--resume",
        "--verbose",
    ]:
        assert re.search(rf"^\| `{flag}\b", _readme("README.md"), re.MULTILINE), flag
