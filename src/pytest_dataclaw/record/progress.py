"""The file that says which run is incomplete and with what parameters it is to be resumed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import RecordError
from pytest_dataclaw.record.reader import ObjectReader, json_object, load_json, string
from pytest_dataclaw.record.store import slug, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_dataclaw.model.task import Json

PROGRESS_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Progress:
    """An incomplete run. `parameters` must be equal for it to be resumed; `planned` holds node ids in order."""

    run_id: str
    model: str
    parameters: dict[str, Json]
    planned: list[str]
    started_at: str
    """UTC, ISO 8601."""
    schema: int = PROGRESS_SCHEMA

    def write(self, path: Path) -> None:
        """Write the file atomically, making its folder."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(
            path,
            {
                "schema": self.schema,
                "run_id": self.run_id,
                "model": self.model,
                "parameters": self.parameters,
                "planned": self.planned,
                "started_at": self.started_at,
            },
        )

    @classmethod
    def read(cls, path: Path) -> Progress | None:
        """Read the file; None where there is none, RecordError naming file and field where it is damaged."""
        if not path.exists():
            return None
        document = load_json(path)
        try:
            return cls._from_json(document)
        except RecordError as error:
            raise RecordError(f"{path}: {error}") from error

    @classmethod
    def _from_json(cls, obj: Json) -> Progress:
        reader = ObjectReader(obj)
        schema = reader.integer("schema")
        if schema != PROGRESS_SCHEMA:
            reader.fail(
                "schema", f"version {schema} is not the {PROGRESS_SCHEMA} that this version of the plugin reads"
            )
        progress = cls(
            schema=schema,
            run_id=reader.text("run_id"),
            model=reader.text("model"),
            parameters=reader.object("parameters", json_object),
            planned=list(reader.items("planned", string)),
            started_at=reader.text("started_at"),
        )
        reader.end()
        return progress


def progress_path(output: Path, model_slug: str, selection: str = "") -> Path:
    """Return `output/progress_<model>.json`, with the selection in its name where only some trials are to run."""
    return output / (f"progress_{model_slug}_{slug(selection)}.json" if selection else f"progress_{model_slug}.json")


def remove(path: Path) -> None:
    """Remove the file of a run that is complete; no error where there is none."""
    path.unlink(missing_ok=True)


def differences(old_parameters: Mapping[str, Json], new_parameters: Mapping[str, Json]) -> list[str]:
    """Return one line `name: was X, now Y` for every parameter that differs, by name; `not set` where it is absent."""
    lines = []
    for name in sorted(old_parameters.keys() | new_parameters.keys()):
        old, new = _shown(old_parameters, name), _shown(new_parameters, name)
        if old != new:
            lines.append(f"{name}: was {old}, now {new}")
    return lines


def _shown(parameters: Mapping[str, Json], name: str) -> str:
    return json.dumps(parameters[name], ensure_ascii=False, sort_keys=True) if name in parameters else "not set"
