"""The front matter means what its YAML means, however it is read."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dataclaw.collect.front_matter import read_front_matter
from pytest_dataclaw.collect.source import SourceText
from pytest_dataclaw.collect.yaml_text import YamlTextError, parse_yaml
from pytest_dataclaw.errors import TaskError

LINES = st.sampled_from(
    [
        "id: a",
        "id: true",
        "on: x",
        "n: 1200",
        "d: 2022-99-99",
        "g: dataclaw build",
        "id: &x [1, 2]",
        "name: b # remark",
        "name: |",
        "name: [",
        "name: 'open",
        "name:",
        "name:x",
        "other: *x",
        "...",
        "  indented: 1",
        " text",
        "]",
        "'",
        "",
        "# remark",
        "{c: d",
        "workspace_files: []",
        "workspace_files: [",
        "workspace_files: *x",
        "workspace_files:",
        '  {"source": "a", "dest": "b"}',
        "- item",
    ]
)


@settings(max_examples=1500, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=8).map("\n".join))
def test_reading_in_halves_equals_reading_in_one_piece(block: str) -> None:
    source = SourceText(Path("task_1.md"), f"---\n{block}\n---\nbody", "")
    try:
        whole = parse_yaml(block + "\n")
    except YamlTextError:
        whole = None
    try:
        read = read_front_matter(source).fields.values
    except TaskError:
        read = None
    assert read == (whole if isinstance(whole, dict) else None)
