"""The resolver: from command line, environment, `.env` and ini file to the settings of a run; no pytest.

Precedence: command line > environment > `.env` > ini > default. Secrets come from the environment or `.env` only;
nothing is written to the environment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.options import OPTIONS, VARIABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_dataclaw.options import Option

COMMAND_LINE = "command line"
DEFAULT = "default"
BUILT_IN_MODELS = ("oracle", "nop")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run, resolved and checked. `sources` says where each came from, by option name."""

    model: str
    judge: str
    agent: str
    sandbox: str
    profile: str
    runs: int
    timeout_multiplier: float
    max_requests: int
    max_concurrency: int | None
    output: Path
    resume: bool
    suite: str
    root: str
    process: str
    fail_under: str
    show_gold: bool
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables without an option that are set, secrets among them."""
    sources: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What a user should know: variables that are set but not used, a judge that was not taken."""

    @property
    def secrets(self) -> dict[str, str]:
        """The values that must reach neither the disk nor a sandbox, by variable."""
        return {v.name: self.variables[v.name] for v in VARIABLES if v.secret and v.name in self.variables}

    @property
    def tasks_subdir(self) -> str:
        """The folder of task files below the benchmark root."""
        return self.variables.get("TASKS_SUBDIR", "tasks")


@dataclass(frozen=True, slots=True)
class Sources:
    """Where settings come from, raw. `command_line` holds what was given there only, by option name."""

    command_line: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    dotenv: Mapping[str, str | None] = field(default_factory=dict)
    ini: Mapping[str, str] = field(default_factory=dict)

    def variable(self, name: str) -> tuple[str, str]:
        """Return value and source of a variable; ("", default) where it is unset or empty."""
        if self.environ.get(name):
            return self.environ[name], f"environment variable {name}"
        if self.dotenv.get(name):
            return str(self.dotenv[name]), f"{name} in .env"
        return "", DEFAULT

    def option(self, option: Option) -> tuple[Any, str]:
        """Return converted value and source of an option; raise UsageError naming both where it is wrong."""
        given = self.command_line.get(option.name)
        if option.is_switch and given:
            return True, COMMAND_LINE
        raw, source = (str(given), COMMAND_LINE) if given is not None else self.variable(option.env)
        if source == DEFAULT and self.ini.get(option.dest):
            raw, source = self.ini[option.dest], f"{option.dest} in the ini file"
        if source == DEFAULT:
            raw = option.default
        if raw == "" and option.default == "":
            return "", source
        try:
            return option.convert(raw), source
        except ValueError as error:
            name = option.flag if source == COMMAND_LINE else source
            raise UsageError(f"{name}: expected {error}, got {raw!r}") from None


def resolve(sources: Sources, *, invocation_dir: Path, base_dir: Path) -> Settings:
    """Resolve the option table; raise UsageError naming the option and where its bad value stands.

    A relative output folder is taken from `invocation_dir` if it was given on the command line, else from `base_dir`
    (the benchmark root).
    """
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for option in OPTIONS:
        values[option.name], origin[option.name] = sources.option(option)
    variables = {v.name: value for v in VARIABLES if (value := sources.variable(v.name)[0])}
    notes = [
        f"{v.name} is set ({sources.variable(v.name)[1]}) but not used by this version"
        for v in VARIABLES
        if v.name in variables and not v.used and not v.secret
    ]
    values["judge"], judge_note = _judge(values["model"], values["judge"], origin["judge"])
    if judge_note:
        notes.append(judge_note)
    values["max_concurrency"] = values["max_concurrency"] or None
    plays = not values["model"] or is_built_in(values["model"])
    values["agent"] = values["agent"] or ("react" if plays else "openclaw")
    values["sandbox"] = values["sandbox"] or ("local" if plays and values["agent"] == "react" else "docker")
    anchor = invocation_dir if origin["output"] == COMMAND_LINE else base_dir
    values["output"] = anchor / Path(values["output"]).expanduser()
    return Settings(**values, variables=variables, sources=origin, notes=tuple(notes))


def is_built_in(model: str) -> bool:
    """Tell whether a model is played by the plugin itself: no key, no cost."""
    return model in BUILT_IN_MODELS


def _judge(model: str, judge: str, source: str) -> tuple[str, str]:
    """Choose the judge; a built-in model takes another than `rules` from the command line only.

    So a `.env` that names a paid judge never makes `oracle` cost money.
    """
    if not model or is_built_in(model):
        if judge and source != COMMAND_LINE:
            return "rules", f"judge {judge!r} ({source}) is not used: a built-in model is judged by 'rules'"
        return judge or "rules", ""
    return judge, ""


def check_runnable(settings: Settings) -> None:
    """Raise UsageError unless the settings name a model and a judge that can be run."""
    if not settings.model:
        raise UsageError(
            "no model to evaluate: give --dataclaw-model=NAME or set DEFAULT_MODEL in the environment or .env; "
            "--dataclaw-model=oracle needs no key (--collect-only needs no model)"
        )
    if not settings.judge:
        raise UsageError(
            f"no judge for {settings.model!r}: give --dataclaw-judge=NAME or set JUDGE_MODEL to a model, "
            "or give --dataclaw-judge=rules for the deterministic judge alone"
        )
    if settings.agent == "openclaw" and settings.sandbox == "local":
        raise UsageError("--dataclaw-agent=openclaw needs a container: leave --dataclaw-sandbox=local out")
