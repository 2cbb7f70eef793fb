"""The summary as lines for a terminal: plain text, aligned by display width."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

from pytest_dataclaw.model.result import EndReason
from pytest_dataclaw.record.store import RECORD_NAME
from pytest_dataclaw.settings import is_built_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_dataclaw.model.result import Record
    from pytest_dataclaw.report.agreement import PartPlace
    from pytest_dataclaw.report.summary import Metrics, RunFacts, Summary, UsageTotal
    from pytest_dataclaw.score.statistics import Estimate, Mean

_LABEL = 12
_COLUMNS = (6, 7, 7, 7, 7, 7)
_SHORT_LIST = 5


def render(summary: Summary, width: int = 80, verbose: bool = False) -> list[str]:
    """Return the block for the terminal's end: no colours, no trailing spaces; `verbose` cuts no list short."""
    limit = None if verbose else _SHORT_LIST
    lines = [
        *_head(summary.facts),
        "",
        *_headline(summary),
        "",
        *_table(summary, width),
        "",
        *_counts(summary),
        *_usage(summary),
        *_web(summary),
        *_judge(summary, limit),
        *_doubts(summary, limit),
        _line("records", str(summary.facts.output / "*" / f"*_{summary.facts.run_id}*" / RECORD_NAME)),
    ]
    return [line.rstrip() for line in lines]


def one_line(record: Record) -> str:
    """Return a trial's result in a few words, for the line that pytest prints of it."""
    if record.scores is None:
        return f"{record.outcome.value}  {record.end_reason.value}"
    scores = record.scores
    metrics = {"acc": scores.acc, "ee": scores.ee, "gpr": scores.gpr, "tpe": scores.tpe}
    words = [f"{name}={value:.2f}" for name, value in metrics.items() if value is not None]
    words.append(f"turns={record.turns}")
    if record.end_reason is not EndReason.ANSWERED:
        words.append(record.end_reason.value)
    return f"{record.outcome.value}  {' '.join(words)}"


def display_width(text: str) -> int:
    """Return the columns that a text takes on a terminal: two for wide signs, none for combining ones."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _fit(text: str, width: int) -> str:
    """Cut or fill a text to exactly this display width."""
    if display_width(text) > width:
        while display_width(text) > width - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (width - display_width(text))


def _line(label: str, text: str) -> str:
    return f"{_fit(label, _LABEL)} {text}"


def _head(facts: RunFacts) -> list[str]:
    lines = [
        _line("model", facts.model),
        _line("judge", f"{facts.judge} (process: {facts.process})"),
        _line("agent", f"{facts.agent} ({facts.profile})" if facts.profile else facts.agent),
        _line("sandbox", facts.sandbox),
    ]
    # The built-in models play our own commands only.
    if not facts.isolated and not is_built_in(facts.model):
        lines.append(_line("WARNING", f"the {facts.sandbox} sandbox isolates nothing: the agent could reach this"))
        lines.append(_line("", "machine's files and network, and the scores may not be comparable"))
    trials = f"{facts.planned} of {facts.total} trials" if facts.planned != facts.total else f"{facts.total} trials"
    if facts.selection:
        trials += f", selected by {facts.selection}"
    if facts.runs > 1:
        trials += f", {facts.runs} runs a task"
    return [*lines, _line("trials", trials)]


def _headline(summary: Summary) -> list[str]:
    overall = summary.overall
    tasks = f" on {overall.acc.clusters} tasks" if summary.facts.runs > 1 else ""
    lines = [
        _line("Acc", f"{_number(overall.acc)}  n={overall.acc.n} judged{tasks}{_interval(overall.acc)}"),
        _line("Acc(all)", f"{_number(overall.acc_all)}  n={overall.acc_all.n}, errored counted as 0"),
        _line("EE", f"{_number(overall.ee)}  n={overall.ee.n} solved"),
        _line("GPR", f"{_number(overall.gpr)}  n={overall.gpr.n} unsolved"),
        _line("TPE", f"{_number(overall.tpe)}  n={overall.tpe.n} unsolved, 0 without a milestone (leaderboard)"),
        _line(
            "TPE achieved",
            f"{_number(overall.tpe_achieved)}  n={overall.tpe_achieved.n} unsolved with a milestone (paper v3)",
        ),
    ]
    if summary.spreads:
        apart = sum(spread.low != spread.high for spread in summary.spreads)
        lines.append(_line("spread", f"{apart} of {len(summary.spreads)} tasks differ between runs"))
    return lines


def _interval(estimate: Estimate) -> str:
    interval = estimate.interval
    return "" if interval is None else f", 95 % interval {interval.low:.3f} to {interval.high:.3f} ({interval.method})"


def _table(summary: Summary, width: int) -> list[str]:
    sections = [
        [("overall", summary.overall)],
        [(f"  {group.name or '(no category)'}", group.metrics) for group in summary.categories],
        [(f"  {group.name or '(no level)'}", group.metrics) for group in summary.levels],
    ]
    names = [name for section in sections for name, _ in section]
    name_width = min(max(map(display_width, names)), max(width - sum(_COLUMNS), _LABEL))
    lines = [_row("", ("n", "solved", "Acc", "EE", "GPR", "TPE"), name_width)]
    for title, section in zip(("", "by category", "by level"), sections, strict=True):
        if title and section:
            lines.append(title)
        lines += [_row(name, _cells(metrics), name_width) for name, metrics in section]
    return lines


def _cells(metrics: Metrics) -> tuple[str, ...]:
    means: tuple[Mean | Estimate, ...] = (metrics.acc, metrics.ee, metrics.gpr, metrics.tpe)
    return (str(metrics.acc.n), str(metrics.solved), *(_number(mean) for mean in means))


def _row(name: str, cells: Sequence[str], name_width: int) -> str:
    columns = (cell.rjust(width) for cell, width in zip(cells, _COLUMNS, strict=True))
    return _fit(name, name_width) + "".join(columns)


def _number(mean: Mean | Estimate) -> str:
    return "-" if mean.value is None else f"{mean.value:.3f}"


def _counts(summary: Summary) -> list[str]:
    overall = summary.overall
    counts = f"{overall.solved} solved, {overall.unsolved} unsolved, {overall.errored} errored"
    if summary.skipped:
        counts += f", {summary.skipped} never started"
    lines = [_line("outcomes", counts)]
    if summary.end_reasons:
        lines.append(_line("judged", _tally(summary.end_reasons)))
    if summary.errors:
        lines.append(_line("errored", _tally(summary.errors)))
    return lines


def _tally(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts)


def _usage(summary: Summary) -> list[str]:
    agent, judge = _usage_text(summary.agent_usage), _usage_text(summary.judge_usage)
    return [
        _line("agent usage", agent),
        _line("judge usage", judge),
        _line("wall time", f"{summary.facts.wall_seconds:.1f} s"),
    ]


def _usage_text(total: UsageTotal) -> str:
    usage = total.usage
    if not usage.requests:
        return "none"
    cost = "n/a" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    if usage.cost_usd is not None and total.unpriced:
        cost += f" (at least: n/a for {total.unpriced} trials)"
    return (
        f"{usage.requests} requests, {usage.input_tokens} + {usage.output_tokens} tokens, cost {cost}, "
        f"{usage.wall_seconds:.1f} s ({usage.waiting_seconds:.1f} s waiting)"
    )


def _web(summary: Summary) -> list[str]:
    """Say what web tasks reached; nothing where there were none."""
    trials = [record.extra for record in summary.records if "hosts" in record.extra]
    if not trials:
        return []
    reached = sum((Counter(extra["hosts"]) for extra in trials), Counter[str]())
    refused = sum(sum(extra["refused_hosts"].values()) for extra in trials)
    text = f"{len(trials)} trials, {reached.total()} requests to {len(reached)} hosts, {refused} refused"
    off = summary.facts.web_search_off
    return [_line("web", text), *([_line("", f"web search off: {off}")] if off else [])]


def _judge(summary: Summary, limit: int | None) -> list[str]:
    check = summary.judge_check
    lines = []
    if check.agreement.n or check.undecided:
        rate = "-" if check.agreement.rate is None else f"{check.agreement.rate:.3f}"
        kappa = check.agreement.note if check.agreement.kappa is None else f"kappa {check.agreement.kappa:.3f}"
        lines.append(
            _line(
                "vs. rules", f"{rate} agreement, {kappa}, n={check.agreement.n} parts; {len(check.undecided)} undecided"
            )
        )
        lines += _listing("disagreement", _places(check.disagreements), limit)
    if check.undecided_scored:
        lines.append(_line("undecided", f"{len(check.undecided_scored)} parts the rules could not decide, scored 0"))
        lines += _listing("undecided", _places(check.undecided_scored), limit)
    return lines


def _places(places: Iterable[PartPlace]) -> list[str]:
    return [f"{place.node_id} {place.part}" for place in places]


def _doubts(summary: Summary, limit: int | None) -> list[str]:
    lines = []
    for suspicion in summary.suspicions:
        lines.append(_line("look at", f"{len(suspicion.node_ids)} {suspicion.what}"))
        lines += _listing("", suspicion.node_ids, limit)
    lines += _listing("crashed", [f"{node_id}: {message}" for node_id, message in summary.crashed], None)
    if limit is None:
        lines += _listing(
            "spread", [f"{each.task}: {each.low:.3f} to {each.high:.3f}, n={each.n}" for each in summary.spreads], limit
        )
    return lines


def _listing(label: str, items: Sequence[str], limit: int | None) -> list[str]:
    shown = items if limit is None else items[:limit]
    lines = [_line("", f"{label}: {item}" if label else item) for item in shown]
    if len(shown) < len(items):
        lines.append(_line("", f"... and {len(items) - len(shown)} more (-v)"))
    return lines
