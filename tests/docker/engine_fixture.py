"""Fixtures of the Docker tests: the engine and the image, or a skip that says what is missing, and a provider.

No conftest.py, as mypy takes no second module of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.errors import SandboxError, UsageError
from pytest_dataclaw.provision.docker import DockerProvider
from pytest_dataclaw.provision.engine import connect
from pytest_dataclaw.provision.image import LOCAL_IMAGE, image_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import DockerClient


@pytest.fixture(scope="session")
def client() -> Iterator[DockerClient]:
    """A client of this machine's engine."""
    try:
        client = connect()
    except SandboxError as error:
        pytest.skip(str(error))
    yield client
    client.close()


@pytest.fixture(scope="session")
def image(client: DockerClient) -> str:
    """The sandbox image."""
    try:
        image_digest(client, LOCAL_IMAGE)
    except UsageError as error:
        pytest.skip(f"{error}; docker/build-image makes it")
    return LOCAL_IMAGE


@pytest.fixture(scope="module")
def provider(image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerProvider]:
    """A provider of the sandbox image; its containers live for the brief's time."""
    packages = tmp_path_factory.mktemp("packages")
    provider = DockerProvider(image, seconds_for=lambda brief: brief.timeout_seconds, packages=packages)
    yield provider
    provider.close()
