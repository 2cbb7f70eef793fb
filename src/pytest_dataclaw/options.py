"""The option table and the table of variables: what can be set, under which names, and how a text is read.

Loaded in every pytest project of the environment, hence standard library only. Variable names are the published
benchmark's own; those that only this plugin knows start with `DATACLAW_`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in _TRUE | _FALSE:
        return lowered in _TRUE
    raise ValueError("a boolean (true/false, yes/no, on/off, 1/0)")


def _count(text: str) -> int:
    if text.strip().isdigit() and int(text) >= 1:
        return int(text)
    raise ValueError("a whole number from 1 on")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and value > 0:
        return value
    raise ValueError("a number above 0")


def _one_of(*choices: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text in choices:
            return text
        raise ValueError("one of " + ", ".join(choices))

    return convert


@dataclass(frozen=True, slots=True)
class Option:
    """One setting. Its flag is `--dataclaw-<name>`, its ini key `dataclaw_<name>`, underscores kept in the latter."""

    name: str
    help: str
    env: str
    convert: Callable[[str], Any] = str
    default: str = ""
    metavar: str = ""
    is_switch: bool = False

    @property
    def flag(self) -> str:
        """The command-line spelling."""
        return "--dataclaw-" + self.name.replace("_", "-")

    @property
    def dest(self) -> str:
        """The ini key, and the attribute that pytest keeps the command-line value under."""
        return f"dataclaw_{self.name}"


OPTIONS: tuple[Option, ...] = (
    Option(
        "model",
        "Model that drives the agent: 'oracle' or 'nop' (built in), 'openrouter/...', or one of the custom endpoint.",
        "DEFAULT_MODEL",
        metavar="MODEL",
    ),
    Option(
        "judge",
        "Judge: 'rules' (deterministic), 'oracle' (built in), or a model, named as for --dataclaw-model.",
        "JUDGE_MODEL",
        metavar="JUDGE",
    ),
    Option(
        "agent",
        "Agent under test: 'openclaw' (default for real models) or 'react' (default for built-in ones).",
        "DATACLAW_AGENT",
        _one_of("react", "openclaw"),
        metavar="AGENT",
    ),
    Option(
        "sandbox",
        "Where it works: 'docker' (default for real models and for openclaw) or 'local' (isolates nothing).",
        "DATACLAW_SANDBOX",
        _one_of("local", "docker"),
        metavar="SANDBOX",
    ),
    Option(
        "profile",
        "How OpenClaw is set up: 'upstream' (as the published benchmark does) or 'lean' (five tools, no plugins).",
        "DATACLAW_PROFILE",
        _one_of("upstream", "lean"),
        "upstream",
        metavar="PROFILE",
    ),
    Option("runs", "Trials per task.", "BENCHMARK_RUNS", _count, "1", metavar="N"),
    Option(
        "timeout_multiplier",
        "Multiplies every task's time limit.",
        "BENCHMARK_TIMEOUT_MULTIPLIER",
        _positive,
        "1.0",
        metavar="X",
    ),
    Option(
        "max_requests",
        "Most requests to its model that a trial may make; then it is judged on what it has.",
        "DATACLAW_MAX_REQUESTS",
        _count,
        "200",
        metavar="N",
    ),
    Option(
        "max_concurrency",
        "Most requests under way at one provider, of all workers together (default: any number).",
        "DATACLAW_MAX_CONCURRENCY",
        _count,
        metavar="N",
    ),
    Option("output", "Folder of results, below the benchmark root.", "OUTPUT_SUBDIR", default="output", metavar="DIR"),
    Option("resume", "Go on with this model's incomplete run.", "DATACLAW_RESUME", _boolean, "false", is_switch=True),
    Option("suite", "Only these tasks: ids or id prefixes, comma-separated.", "DATACLAW_SUITE", metavar="IDS"),
    Option("root", "Benchmark root whose tasks are run if no path is given.", "DATACLAW_ROOT", metavar="DIR"),
    Option(
        "process",
        "Trials whose milestones are judged: 'unsolved', 'all' (recorded, never in the headline) or 'off'.",
        "DATACLAW_PROCESS",
        _one_of("unsolved", "all", "off"),
        "unsolved",
        metavar="WHICH",
    ),
    Option(
        "fail_under",
        "Make the exit status a gate on a metric, for example acc=0.45 (errored trials count as 0).",
        "DATACLAW_FAIL_UNDER",
        metavar="METRIC=X",
    ),
    Option(
        "show_gold",
        "Show gold answers in failure texts.",
        "DATACLAW_SHOW_GOLD",
        _boolean,
        "false",
        is_switch=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the published benchmark that has no option; `used` tells whether this version acts on it."""

    name: str
    help: str
    secret: bool = False
    used: bool = False


def _model_variables(prefix: str, who: str) -> tuple[Variable, ...]:
    return (
        Variable(f"{prefix}_MODEL_CONTEXT_WINDOW", f"Context window of the {who}, in tokens."),
        Variable(f"{prefix}_MODEL_MAX_TOKENS", f"Most tokens that the {who} may answer with."),
        Variable(f"{prefix}_MODEL_COST_INPUT", f"Price of the {who}'s input, USD per million tokens."),
        Variable(f"{prefix}_MODEL_COST_OUTPUT", f"Price of the {who}'s output, USD per million tokens."),
        Variable(f"{prefix}_MODEL_COST_CACHE_READ", f"Price of the {who}'s cache reads, USD per million tokens."),
        Variable(f"{prefix}_MODEL_COST_CACHE_WRITE", f"Price of the {who}'s cache writes, USD per million tokens."),
    )


VARIABLES: tuple[Variable, ...] = (
    Variable("TASKS_SUBDIR", "Folder of the task files below the benchmark root (default: tasks).", used=True),
    Variable("DOCKER_IMAGE", "Image of the OpenClaw container.", used=True),
    Variable("GATEWAY_PORT", "Port of the OpenClaw gateway in the container."),
    Variable("TMP_WORKSPACE", "Workspace folder in the container."),
    Variable("DEFAULT_PARALLEL", "Trials at a time in the published runner; here pytest's own -n decides."),
    Variable("OPENROUTER_API_KEY", "Key for models named openrouter/...", secret=True, used=True),
    Variable("OPENCLAW_CUSTOM_BASE_URL", "Base URL of an OpenAI-compatible endpoint for the agent.", used=True),
    Variable("OPENCLAW_CUSTOM_API_KEY", "Key for that endpoint.", secret=True, used=True),
    Variable("OPENCLAW_CUSTOM_MODEL_ID", "Model id on the wire at that endpoint.", used=True),
    Variable("JUDGE_CUSTOM_BASE_URL", "Base URL of an OpenAI-compatible endpoint for the judge.", used=True),
    Variable("JUDGE_CUSTOM_API_KEY", "Key for that endpoint.", secret=True, used=True),
    Variable("JUDGE_CUSTOM_MODEL_ID", "Model id on the wire at that endpoint.", used=True),
    Variable("OPENAI_API_KEY", "Accepted as in the published benchmark.", secret=True),
    Variable("ANTHROPIC_API_KEY", "Accepted as in the published benchmark.", secret=True),
    Variable("GEMINI_API_KEY", "Accepted as in the published benchmark.", secret=True),
    Variable(
        "BRAVE_API_KEY", "Key of the web search in web tasks, the one key that enters them.", secret=True, used=True
    ),
    Variable("BRAVE_WEB_SEARCH_MAX_RESULTS", "Results per web search (default: 5).", used=True),
    Variable("BRAVE_WEB_SEARCH_TIMEOUT_SECONDS", "Time limit of a web search (default: 30).", used=True),
    Variable("HTTP_PROXY_INNER", "HTTP proxy between ours for web tasks and http:// sites.", used=True),
    Variable("HTTPS_PROXY_INNER", "HTTP proxy between ours for web tasks and https:// sites.", used=True),
    *_model_variables("OPENCLAW", "agent's model"),
    *_model_variables("JUDGE", "judge's model"),
)
