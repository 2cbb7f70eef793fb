"""What a wheel and a source archive hold: all that is needed without a checkout, and nothing that runs left behind."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from pytest_dataclaw.provision.image import context_digest
from pytest_dataclaw.provision.recipe import recipe_folder

ROOT = Path(__file__).parents[2]
NEVER_SHIPPED = {"output", "__pycache__", ".env", ".git", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A wheel and a source archive of this checkout, by suffix."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True)
    return {path.suffix: path for path in folder.iterdir()}


def test_the_wheel_holds_what_the_image_is_built_from(archives: dict[str, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(archives[".whl"]) as wheel:
        names = wheel.namelist()
        wheel.extractall(tmp_path)
    container = tmp_path / "pytest_dataclaw/container"
    assert context_digest(container) == context_digest(ROOT)
    assert {"build-image", "base-image", "start-engine"} <= {path.name for path in (container / "docker").iterdir()}
    assert not NEVER_SHIPPED & {part for name in names for part in Path(name).parts}
    assert {name.partition("/")[0] for name in names} == {"pytest_dataclaw", "pytest_dataclaw-0.1.0.dist-info"}


def test_the_package_finds_it_when_it_is_installed_from_the_wheel(archives: dict[str, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(archives[".whl"]) as wheel:
        wheel.extractall(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from pytest_dataclaw.provision.image import context_digest\n"
        "from pytest_dataclaw.provision.recipe import recipe_folder\n"
        "print(recipe_folder(), context_digest())"
    )
    printed = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert printed.stdout.split() == [str(tmp_path / "pytest_dataclaw/container"), context_digest(ROOT)]


def test_in_a_checkout_it_is_the_checkouts() -> None:
    assert recipe_folder() == ROOT


def test_the_source_archive_holds_a_checkouts_content(archives: dict[str, Path]) -> None:
    with tarfile.open(archives[".gz"]) as archive:
        names = [Path(name).relative_to("pytest_dataclaw-0.1.0") for name in archive.getnames()]
    top = {name.parts[0] for name in names}
    assert {"src", "tests", "docker", "Dockerfile", "assets", "tasks", "LICENSE", "README.md", "conftest.py"} <= top
    assert not NEVER_SHIPPED & {part for name in names for part in name.parts}
