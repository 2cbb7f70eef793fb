"""The shape of the project: imports run one way, and only `plugin` knows pytest."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/pytest_dataclaw"
STAGES = {"collect", "provision", "proxy", "drive", "judge"}
LAYERS: list[set[str]] = [
    {"errors"},
    {"model", "options"},
    {"settings", "score", "record", *STAGES},
    {"suites", "ending"},
    {"trial"},
    {"report"},
    {"plugin", "cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# `testing` serves users' tests and ours, from outside the layers.
OUTSIDE = {"__init__", "testing"}
# Within one layer: records are scored files; a suite's formulas and stages' base modules may be used by all.
ALLOWED_WITHIN = {("record", "score")}


def _imports(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, dotted, without the package's name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.partition(".")[2] for name in names if name.split(".")[0] == "pytest_dataclaw" and "." in name}
    return found


def _modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_run_one_way(path: Path) -> None:
    part = _part(path)
    if part in OUTSIDE:
        return
    for module in _imports(path):
        target = module.split(".")[0]
        if target == part or (part, target) in ALLOWED_WITHIN:
            continue
        is_base = target in STAGES and module == f"{target}.base"
        assert RANK[target] < RANK[part] or (RANK[target] == RANK[part] and is_base), f"{path}: imports {module}"


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_the_plugin_imports_pytest(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.split(".")[0] for name in names}
    assert _part(path) == "plugin" or not roots & {"pytest", "_pytest", "xdist"}


def test_every_part_has_a_layer() -> None:
    assert {_part(path) for path in _modules()} - OUTSIDE <= set(RANK)
