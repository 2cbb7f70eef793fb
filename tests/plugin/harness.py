"""A small benchmark root made on the fly, and pytest run on it in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MODES: dict[str, list[str]] = {"no-xdist": ["-p", "no:xdist"], "xdist-idle": ["-n0"], "n2": ["-n2"]}
"""The three ways every behaviour of the plugin must hold in: without xdist, with it idle, with two workers."""

SUM_STEPS = (
    (
        "import csv\n"
        "rows = list(csv.DictReader(open('database/numbers.csv', encoding='utf-8')))\n"
        "total = sum(int(row['value']) for row in rows)\n"
        "open('.total', 'w').write(str(total))\n"
        "print('turnover of the firms:', total)\n"
    ),
    "print(int(open('.total').read()) * 2)\n",
)
"""Two steps: 1 + 2 + 30417 = 30420 is the milestone, twice that, 60840, the answer."""


@dataclass
class Result:
    """What a pytest process left behind."""

    code: int
    out: str
    junit_path: Path
    output: Path

    @property
    def junit(self) -> ET.Element:
        """The <testsuite> element of the JUnit file."""
        suite = ET.parse(self.junit_path).getroot().find("testsuite")
        assert suite is not None
        return suite

    def counts(self) -> tuple[int, int, int]:
        """Tests, failures and errors as JUnit counts them."""
        tests, failures, errors = (int(self.junit.get(name, "-1")) for name in ("tests", "failures", "errors"))
        return tests, failures, errors

    def records(self) -> list[dict[str, Any]]:
        """All records below the output folder, by node id and start."""
        found = [json.loads(path.read_text("utf-8")) for path in self.output.glob("*/*/record.json")]
        return sorted(found, key=lambda record: (record["node_id"], record["started_at"]))

    def summary(self) -> dict[str, Any]:
        """The only summary file below the output folder."""
        (path,) = self.output.glob("summary_*.json")
        loaded: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return loaded


@dataclass
class Bench:
    """A benchmark root with as many tasks as a test adds."""

    root: Path
    count: int = 0
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.root / "assets/database").mkdir(parents=True)
        (self.root / "assets/database/numbers.csv").write_text("name,value\na,1\nb,2\nc,30417\n", "utf-8")
        (self.root / "tasks").mkdir()
        # Its own ini file, so that no other project's settings are found.
        (self.root / "pytest.ini").write_text("[pytest]\n", "utf-8")

    @property
    def output(self) -> Path:
        """Where results go unless a test says otherwise."""
        return self.root / "output"

    def add(
        self,
        *,
        category: str = "alpha",
        level: str = "easy",
        answer: Any = 60840,
        guidelines: str = "Answer with an integer.",
        steps: Sequence[str] | None = SUM_STEPS,
        milestones: dict[str, Any] | None = None,
        timeout: float = 60,
        **front_matter: Any,
    ) -> str:
        """Add a task and return its node id below the root."""
        self.count += 1
        gold_id = f"{level}{self.count:03d}"
        task_id = f"task_{self.count:03d}_{category}_{level}_{gold_id}"
        number = 2 if steps is None else len(steps)
        gold = {
            "id": gold_id,
            "question": "What is twice the total of the values?",
            "guidelines": guidelines,
            "answer": answer,
            "metadata": {"db": "test", "level": level, "category": category},
            "steps": [f"step {n + 1}" for n in range(number)],
            "steps_num": number,
            "milestone": {"turnover of the firms": 30420} if milestones is None else milestones,
        }
        gold_file = self.root / f"assets/qa_gold/{category}/{gold_id}.json"
        gold_file.parent.mkdir(parents=True, exist_ok=True)
        gold_file.write_text(json.dumps(gold, ensure_ascii=False), "utf-8")
        for n, step in enumerate(steps or (), start=1):
            script = self.root / f"assets/solutions/{category}/{gold_id}/step_{n:02d}.py"
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(step, "utf-8")
        fields = {
            "id": task_id,
            "name": f"{category}-{level}-{gold_id}",
            "category": category,
            "grading_type": "llm_judge",
            "timeout_seconds": timeout,
            "gold_file": f"qa_gold/{category}/{gold_id}.json",
            "workspace_files": [{"source": "database/numbers.csv", "dest": "database/numbers.csv"}],
            **front_matter,
        }
        lines = [f"{name}: {json.dumps(value)}" for name, value in fields.items()]
        text = "\n".join(["---", *lines, "---", "", "## Prompt", "", str(gold["question"]), "", str(guidelines), ""])
        path = self.root / f"tasks/{task_id}.md"
        path.write_text(text, "utf-8")
        return f"tasks/{task_id}.md::{task_id}"

    def command(self, *arguments: str) -> list[str]:
        """The command line of a run."""
        return [sys.executable, "-m", "pytest", "--junitxml", str(self.root / "junit.xml"), *arguments]

    def environment(self) -> dict[str, str]:
        """The environment of a run: this machine's, without what would configure the plugin or pytest."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DATACLAW", "PYTEST", "COV_", "DEFAULT_"))}
        return {**kept, "PYTHONUNBUFFERED": "1", **self.env}

    def run(self, *arguments: str, cwd: Path | None = None, timeout: float = 180) -> Result:
        """Run pytest and wait for it."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=cwd or self.root,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Result(done.returncode, done.stdout, self.root / "junit.xml", self.output)
