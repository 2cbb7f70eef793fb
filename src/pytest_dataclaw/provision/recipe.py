"""The files that the image is built from and that containers run: `Dockerfile` and the folder `docker/`."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_IN_WHEEL = _PACKAGE / "container"


def recipe_folder() -> Path:
    """Return the folder that holds them: within the package as a wheel installs it, else the checkout it lies in."""
    return _IN_WHEEL if _IN_WHEEL.is_dir() else _PACKAGE.parents[1]
