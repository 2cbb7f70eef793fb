"""The `dataclaw` command: what is done to a benchmark outside a pytest run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dataclaw import __version__
from pytest_dataclaw.errors import DataclawError

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return 0, 1 where `--check` finds something to do, 2 on an error."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except DataclawError as error:
        print(f"dataclaw: error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dataclaw", description="Tools around the pytest-dataclaw benchmark plugin.")
    parser.add_argument("--version", action="version", version=f"pytest-dataclaw {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser(
        "build",
        help="make qa_gold and tasks from qa_raw",
        description="Make assets/qa_gold and tasks from assets/qa_raw.",
    )
    build.add_argument("root", type=Path, help="benchmark root: the folder that holds assets/")
    build.add_argument("--check", action="store_true", help="write nothing; exit 1 if anything would change")
    build.set_defaults(run=_build)
    return parser


def _build(options: argparse.Namespace) -> int:
    from pytest_dataclaw.collect.build import build

    report = build(options.root, check=options.check)
    for verb, paths in (("written", report.written), ("removed", report.removed)):
        for path in paths:
            print(f"{verb}: {path}")
    for note in report.notes:
        print(f"note: {note}")
    print(f"{len(report.written)} written, {len(report.removed)} removed, {len(report.unchanged)} unchanged")
    return int(options.check and bool(report.written or report.removed))
