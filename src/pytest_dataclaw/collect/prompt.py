"""Cut the prompt out of a task file; what follows it (the rubric above all) holds the gold answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import TaskError

if TYPE_CHECKING:
    from pytest_dataclaw.collect.source import SourceText

PROMPT = "Prompt"
HOST_SECTIONS = ("Expected Behavior", "Grading Criteria", "LLM Judge Rubric")

_PROMPT_HEADING = re.compile(rf"^##[ \t]+{PROMPT}[ \t]*$", re.MULTILINE)
_HOST_HEADING = re.compile(rf"^ {{0,3}}(#+)[ \t]*(?:{'|'.join(HOST_SECTIONS)})[ \t:#]*$", re.MULTILINE | re.IGNORECASE)


def read_prompt(source: SourceText, start: int) -> str:
    """Return the text of the `## Prompt` section, stripped; it ends at the next section that tasks have.

    A prompt may hold headings of its own, except one that reads like another section's but is not written `## Name`:
    to take it for text could hand the gold answer to the agent, so it is a TaskError.
    """
    heading = _PROMPT_HEADING.search(source.text, start)
    if heading is None:
        raise TaskError(source.path, f"missing section: expected a line `## {PROMPT}`")
    following = _HOST_HEADING.search(source.text, heading.end())
    end = len(source.text)
    if following is not None:
        if following[1] != "##":
            message = f"expected a section heading `## Name`, got {following[0].strip()!r}"
            raise TaskError(source.path, message, line=source.line_at(following.start(1)))
        end = following.start()
    prompt = source.text[heading.end() : end].strip()
    if not prompt:
        raise TaskError(source.path, "empty prompt", line=source.line_at(heading.start()))
    return prompt
