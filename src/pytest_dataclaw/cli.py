"""The `dataclaw` command: what is done to a benchmark outside a pytest run."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dataclaw import __version__
from pytest_dataclaw.errors import DataclawError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_dataclaw.provision.image import ImageInfo


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
    image = commands.add_parser("image", help="build, save or load the sandbox image").add_subparsers(
        required=True, metavar="ACTION"
    )
    make = image.add_parser("build", help="build the image")
    make.add_argument("root", type=Path, nargs="?", help="checkout to build from (default: what came with the package)")
    make.add_argument("--base", help="base image, where Debian's cannot be pulled")
    make.set_defaults(run=_build_image)
    for action, text in (("save", "write the image to an archive"), ("load", "read images from an archive")):
        move = image.add_parser(action, help=text)
        move.add_argument("archive", type=Path, help="file; gzip where its name ends in .gz")
        move.set_defaults(run=_save_image if action == "save" else _load_image)
        if action == "save":
            move.add_argument("--image", default="dataclaw:local", help="image to save (default: dataclaw:local)")
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


def _build_image(options: argparse.Namespace) -> int:
    from pytest_dataclaw.provision import image
    from pytest_dataclaw.provision.engine import connect

    with closing(connect()) as client:
        arguments = {"BASE": options.base} if options.base else {}
        built = image.build(client, options.root, build_args=arguments, progress=lambda line: print(line, flush=True))
        _show_image(built)
    return 0


def _save_image(options: argparse.Namespace) -> int:
    from pytest_dataclaw.provision import image
    from pytest_dataclaw.provision.engine import connect

    with closing(connect()) as client:
        image.save(client, options.image, options.archive)
    return 0


def _load_image(options: argparse.Namespace) -> int:
    from pytest_dataclaw.provision import image
    from pytest_dataclaw.provision.engine import connect

    with closing(connect()) as client:
        for loaded in image.load(client, options.archive):
            _show_image(loaded)
    return 0


def _show_image(info: ImageInfo) -> None:
    print(f"{', '.join(info.tags) or '(no tag)'}  {info.id}  {info.size_bytes / 1e9:.2f} GB")
