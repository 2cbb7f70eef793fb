"""The pytest plugin; the only package that imports pytest.

This module is the entry point and is loaded in every project of the environment: it imports the standard library,
pytest and the option table only, and hooks nothing but options and collection. The rest of the plugin is registered by
`activation.activate` when the first benchmark file is met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.collect.discover import is_task_file
from pytest_dataclaw.options import OPTIONS

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytest_dataclaw.plugin.fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option table as flags and ini keys."""
    group = parser.getgroup("dataclaw", "evaluation of data-analysis agents")
    for option in OPTIONS:
        text = f"{option.help} [variable {option.env}]"
        if option.is_switch:
            group.addoption(option.flag, dest=option.dest, action="store_true", default=None, help=text)
        else:
            group.addoption(option.flag, dest=option.dest, default=None, metavar=option.metavar, help=text)
        parser.addini(option.dest, help=f"{option.help} (as {option.flag})", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Collect from `--dataclaw-root` where no path is given."""
    root = config.getoption("dataclaw_root") or config.getini("dataclaw_root")
    if root and config.args_source is not pytest.Config.ArgsSource.ARGS:
        from pytest_dataclaw.plugin.activation import tasks_folder

        config.args = [str(tasks_folder(config, root))]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Turn a task file into a collector of its trials."""
    if not is_task_file(file_path):
        return None
    from pytest_dataclaw.plugin.activation import activate
    from pytest_dataclaw.plugin.nodes import TaskModule

    activate(parent.config, file_path)
    return TaskModule.from_parent(parent, path=file_path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: Any) -> None:
    """Begin the run before xdist's workers start: their controller collects nothing itself."""
    from pytest_dataclaw.plugin.activation import begin_distributed

    begin_distributed(config)
