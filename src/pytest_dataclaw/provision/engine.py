"""The Docker engine of this machine: how it is reached, and its errors as ours."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import DockerClient

_TIMEOUT_SECONDS = 120
_DEFAULT_HOST = "unix:///var/run/docker.sock"


def connect() -> DockerClient:
    """Return a client of the engine that the environment names; SandboxError where none answers or it is not local."""
    import docker
    from docker.utils import kwargs_from_env

    host = str(kwargs_from_env().get("base_url") or _DEFAULT_HOST)
    if not host.startswith("unix://"):
        raise _not_local(host)
    # Asked here first, as the SDK leaves its socket open where nobody answers.
    if not listens(Path(host.removeprefix("unix://"))):
        raise SandboxError(f"no Docker engine answers at {host} (docker/start-engine starts one on Debian)")
    with engine_errors(f"the Docker engine at {host} cannot be used"):
        client = docker.from_env(timeout=_TIMEOUT_SECONDS)
        system = client.info()["OperatingSystem"]
    if system == "Docker Desktop":
        client.close()
        raise _not_local(f"{host}, {system},")
    return client


def listens(path: Path) -> bool:
    """Return whether somebody accepts connections on a unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _not_local(host: str) -> SandboxError:
    return SandboxError(
        f"the Docker engine at {host} does not run on this machine's own kernel, as a sealed sandbox needs for now:"
        " it reaches the model proxy through a unix socket"
    )


def remove(client: DockerClient, container_id: str) -> None:
    """Remove a container, whatever its state; nothing happens if it is gone, or about to be."""
    from docker.errors import APIError

    with engine_errors("cannot remove a container"):
        try:
            client.api.remove_container(container_id, force=True, v=True)
        except APIError as error:
            if error.status_code not in (404, 409):  # 409: the engine is at it already
                raise


@contextmanager
def engine_errors(failure: str) -> Iterator[None]:
    """Turn the errors of the engine and of the connection to it into SandboxError."""
    from docker.errors import DockerException, ImageNotFound
    from requests.exceptions import RequestException

    try:
        yield
    except ImageNotFound as error:
        raise SandboxError(f"{failure}: no such image (`dataclaw image build` makes dataclaw:local)") from error
    except (DockerException, RequestException, OSError) as error:
        raise SandboxError(f"{failure}: {error}") from error
