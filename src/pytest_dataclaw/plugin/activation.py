"""Wake the plugin up: the first benchmark file (or xdist's controller) turns a pytest session into a run.

In each process the run is one object in the config's stash. The controller - the only process without xdist - makes the
run id; workers are told it. A usage error is kept until collection is over, where pytest reports it as one.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.collect.discover import find_task_files
from pytest_dataclaw.collect.root import BenchmarkRoot, find_root
from pytest_dataclaw.collect.select import SuiteFilter
from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.options import OPTIONS
from pytest_dataclaw.settings import Settings, Sources, check_runnable, resolve

if TYPE_CHECKING:
    from pytest_dataclaw.provision.base import SandboxProvider
    from pytest_dataclaw.proxy.control import ControlAddress
    from pytest_dataclaw.record.index import StoredRecord

WORKER_INPUT = "dataclaw"
CONTROLLER = "dataclaw-controller"


@dataclass
class Run:
    """The run as one process sees it."""

    settings: Settings
    root: BenchmarkRoot
    run_id: str
    address: ControlAddress | None = None
    """Where the model proxy is controlled; None until it runs, and always under --collect-only."""
    prior: dict[str, StoredRecord] = field(default_factory=dict)
    """What a resumed run has on disk already, by node id."""
    task_ids: dict[str, Path] = field(default_factory=dict)
    """The front-matter ids met so far, to find duplicates."""
    folders: set[Path] = field(default_factory=set)
    """The folders of task files met so far that belong to the root."""
    marks: dict[tuple[str, str], pytest.MarkDecorator] = field(default_factory=dict)
    """The markers registered so far, by kind (category or level) and word."""

    @cached_property
    def suite(self) -> SuiteFilter:
        """What `--dataclaw-suite` selects."""
        return SuiteFilter.parse(self.settings.suite)

    @cached_property
    def provider(self) -> SandboxProvider:
        """What makes this process's sandboxes."""
        from pytest_dataclaw.plugin.assembly import make_provider

        return make_provider(self.settings)


RUN = pytest.StashKey[Run]()
USAGE_ERROR = pytest.StashKey[UsageError]()


def is_worker(config: pytest.Config) -> bool:
    """Tell whether this process is one of xdist's workers."""
    return hasattr(config, "workerinput")


def activate(config: pytest.Config, task_file: Path) -> None:
    """Make this session a run, once; called for every benchmark file that is met."""
    if RUN in config.stash or USAGE_ERROR in config.stash:
        _check_same_root(config, task_file)
        return
    from pytest_dataclaw.plugin.reporting import TrialReports

    try:
        run = config.stash[RUN] = _make_run(config, task_file)
        if not is_worker(config) and not config.option.collectonly:
            from pytest_dataclaw.plugin.controller import Controller

            controller = Controller(config, run)
            controller.identify()
            config.pluginmanager.register(controller, CONTROLLER)
    except UsageError as error:
        config.stash[USAGE_ERROR] = error
    _run_nothing_where_nothing_failed(config)
    # Registered last, hence called first: a usage error must come before any other plugin's work on the items.
    config.pluginmanager.register(TrialReports(config), "dataclaw-reports")


def begin_distributed(config: pytest.Config) -> None:
    """Begin the run in xdist's controller if its arguments hold a benchmark file.

    The controller collects nothing, so the files are looked for here.
    """
    for path in _argument_paths(config):
        for task_file in islice(find_task_files([path]), 1):
            activate(config, task_file)
    if USAGE_ERROR in config.stash:
        raise pytest.UsageError(str(config.stash[USAGE_ERROR]))
    if RUN not in config.stash:
        return
    # Long, uneven trials: hand them out one by one unless the user says otherwise.
    if getattr(config.option, "maxschedchunk", 0) is None:
        config.option.maxschedchunk = 1
    config.pluginmanager.get_plugin(CONTROLLER).begin()  # type: ignore[union-attr]  # registered by activate


def tasks_folder(config: pytest.Config, root: str) -> Path:
    """Return the folder of task files below a benchmark root given on the command line or in the ini file."""
    path = config.invocation_params.dir / Path(root).expanduser()
    settings = _settings(config, path)
    folder = path / settings.tasks_subdir
    if not folder.is_dir():
        raise pytest.UsageError(f"--dataclaw-root: no folder of task files at {folder}")
    return folder


def _make_run(config: pytest.Config, task_file: Path) -> Run:
    root = BenchmarkRoot(find_root(task_file) or task_file.parent)
    settings = _settings(config, root.path)
    if not config.option.collectonly:
        check_runnable(settings)
    run = Run(settings, root, _new_run_id())
    if is_worker(config):
        _join(run, config.workerinput.get(WORKER_INPUT))  # type: ignore[attr-defined]  # set by xdist in workers
    return run


def _join(run: Run, told: str | None) -> None:
    """Take the run's identity from what the controller told this worker."""
    from pytest_dataclaw.proxy.control import ControlAddress

    if told is None:
        raise UsageError(
            "this worker met benchmark files that its controller did not: give their folder as an argument"
        )
    identity = json.loads(told)
    run.run_id = identity["run_id"]
    run.address = ControlAddress(**identity["address"])
    if run.settings.resume:
        load_prior(run)


def load_prior(run: Run) -> None:
    """Read what the resumed run has on disk; damaged records are run again, and named."""
    import warnings

    from pytest_dataclaw.record.index import RunIndex

    index = RunIndex(run.settings.output, run.run_id)
    run.prior = index.latest()
    for damaged in index.damaged:
        warnings.warn(pytest.PytestWarning(f"{damaged}; its trial is run again"), stacklevel=1)


def _settings(config: pytest.Config, root: Path) -> Settings:
    dotenv_file = next((p for p in (config.rootpath / ".env", root / ".env") if p.is_file()), None)
    given = {o.name: config.getoption(o.dest) for o in OPTIONS if config.getoption(o.dest) is not None}
    sources = Sources(
        command_line=given,
        environ=os.environ,
        dotenv=_read_dotenv(dotenv_file) if dotenv_file else {},
        ini={o.dest: str(config.getini(o.dest)) for o in OPTIONS},
    )
    return resolve(sources, invocation_dir=config.invocation_params.dir, base_dir=root)


def _read_dotenv(path: Path) -> dict[str, str | None]:
    from dotenv import dotenv_values

    return dotenv_values(path, interpolate=False)


def _run_nothing_where_nothing_failed(config: pytest.Config) -> None:
    """Let `--lf` run nothing where nothing failed, unless --lfnf says otherwise: a whole benchmark costs money."""
    given = (*config.invocation_params.args, *config.getini("addopts"))
    if not any(str(argument).startswith(("--lfnf", "--last-failed-no-failures")) for argument in given):
        config.option.last_failed_no_failures = "none"


def _check_same_root(config: pytest.Config, task_file: Path) -> None:
    run = config.stash.get(RUN, None)
    if run is None or task_file.parent in run.folders:
        return
    root = find_root(task_file) or task_file.parent
    if root == run.root.path:
        run.folders.add(task_file.parent)
    elif USAGE_ERROR not in config.stash:
        config.stash[USAGE_ERROR] = UsageError(
            f"one run takes tasks from one benchmark root, but both {run.root.path} and {root} were given"
        )


def _argument_paths(config: pytest.Config) -> list[Path]:
    """The files and folders among the arguments, without the parts that name items."""
    return [config.invocation_params.dir / argument.split("::", 1)[0] for argument in config.args]


def _new_run_id() -> str:
    return os.urandom(4).hex()
