"""The sandbox image through the Docker SDK: make it, move it between machines, tell what is in it."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.provision.digests import combined_sha256
from pytest_dataclaw.provision.owner import OWNER_LABEL, this_process
from pytest_dataclaw.provision.recipe import recipe_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from docker import DockerClient

LOCAL_IMAGE = "dataclaw:local"
_CONTEXT_LABEL = "dataclaw.context"
_CONTEXT_PATTERNS = ("Dockerfile", "docker/*.mjs", "docker/bake.sh", "docker/requirements.txt")
_BUILD_SECONDS = 3600

_LIST_PACKAGES = r"""
set -e
dpkg-query --show --showformat '${binary:Package} ${Version}\n'
if python3 -m pip --version >/dev/null 2>&1; then python3 -m pip list --format=freeze --disable-pip-version-check; fi
if command -v node >/dev/null; then echo "node $(node --version)"; fi
if command -v npm >/dev/null; then npm list --global --all --parseable --long || test $? = 1; fi
"""
"""`npm list` exits with 1 for a tree that is not to its taste (an unmet peer, say), having printed all of it."""


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """What the engine knows of an image; `id` is the digest of its configuration, so of all its content.

    `context` is the digest of the files it was built from, None where it was not built by this package.
    """

    id: str
    tags: tuple[str, ...]
    size_bytes: int
    created: str
    context: str | None


def context_digest(root: Path | None = None) -> str:
    """Return the digest of what goes into the image: `Dockerfile` and files of `docker/` in `root`, see `build`."""
    files = {PurePosixPath(name): hashlib.sha256(data).hexdigest() for name, data in _context(root).items()}
    return combined_sha256(files)


def build(
    client: DockerClient,
    root: Path | None = None,
    *,
    tag: str = LOCAL_IMAGE,
    target: str | None = None,
    build_args: Mapping[str, str] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> ImageInfo:
    """Build the image, or return the one under `tag` if it was built from the same files.

    `root` is a checkout; without it, the image is built from the files that came with this package.
    `target` is a stage of the Dockerfile (the last one by default), `build_args` are values for its ARGs.
    """
    digest = context_digest(root)
    known = client.images.list(filters={"reference": tag, "label": f"{_CONTEXT_LABEL}={digest}"})
    if known:
        return inspect(client, tag)
    with _engine_errors(f"cannot build {tag}"):
        for event in client.api.build(
            fileobj=_archive(_context(root)),
            custom_context=True,
            tag=tag,
            target=target,
            buildargs=dict(build_args or {}),
            labels={_CONTEXT_LABEL: digest},
            rm=True,
            decode=True,
            timeout=_BUILD_SECONDS,
        ):
            if "error" in event:
                raise UsageError(
                    f"cannot build {tag}: {event['error'].strip()}. Where no image can be pulled,"
                    f" {root or recipe_folder()}/docker/build-image makes the base image first"
                )
            if line := event.get("stream", "").rstrip():
                progress(line)
    return inspect(client, tag)


def inspect(client: DockerClient, image: str) -> ImageInfo:
    """Return what the engine knows of an image; raise UsageError where it has none of that name."""
    with _engine_errors(f"cannot inspect {image}"):
        found: dict[str, Any] = client.images.get(image).attrs
    return ImageInfo(
        id=found["Id"],
        tags=tuple(found["RepoTags"] or ()),
        size_bytes=found["Size"],
        created=found["Created"],
        context=(found["Config"].get("Labels") or {}).get(_CONTEXT_LABEL),
    )


def image_digest(client: DockerClient, image: str) -> str:
    """Return `sha256:...` of the image's configuration: the same on every machine that loaded or pulled it."""
    return inspect(client, image).id


def save(client: DockerClient, image: str, archive: Path) -> None:
    """Write an image with its name to a gzip-compressed tar file, whole or not at all."""
    inspect(client, image)
    partial = archive.with_name(f".{archive.name}.{os.getpid()}.partial")
    try:
        with _engine_errors(f"cannot save {image}"), gzip.open(partial, "wb", compresslevel=1) as file:
            for chunk in client.api.get_image(image):
                file.write(chunk)
        partial.replace(archive)
    except OSError as error:
        raise UsageError(f"cannot save {image} to {archive}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def load(client: DockerClient, archive: Path) -> tuple[ImageInfo, ...]:
    """Load the images of a file that `save` or `docker save` wrote, compressed or not; return them."""
    try:
        with archive.open("rb") as file, _engine_errors(f"cannot load {archive}"):
            loaded = client.images.load(file)
    except OSError as error:
        raise UsageError(f"cannot load {archive}: {error}") from error
    return tuple(inspect(client, image.id) for image in loaded if image.id is not None)


def package_hash(client: DockerClient, image: str, cache: Path) -> str:
    """Return the SHA-256 of the sorted list of Debian, Python and npm packages installed in an image.

    The list is taken in a container without a network, once per image id, and kept in the folder `cache`.
    """
    digest = image_digest(client, image)
    kept = cache / f"{digest.removeprefix('sha256:')}.txt"
    if not kept.is_file():
        packages = _packages(client, digest)
        cache.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}.partial")
        partial.write_bytes(packages)
        partial.replace(kept)
    return hashlib.sha256(kept.read_bytes()).hexdigest()


def _packages(client: DockerClient, image: str) -> bytes:
    with _engine_errors(f"cannot list the packages of {image}"):
        output: bytes = client.containers.run(
            image,
            ["-c", _LIST_PACKAGES],
            entrypoint="sh",
            network_mode="none",
            remove=True,
            stdout=True,
            stderr=False,
            labels={OWNER_LABEL: str(this_process())},
        )
    return b"".join(line + b"\n" for line in sorted(output.splitlines()))


def _context(root: Path | None) -> dict[str, bytes]:
    """Return the files of the build context by their path in it."""
    root = root or recipe_folder()
    files = [file for pattern in _CONTEXT_PATTERNS for file in root.glob(pattern)]
    if not (root / "Dockerfile").is_file():
        raise UsageError(f"{root} holds no Dockerfile: the image is built from a checkout of pytest-dataclaw")
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in files}


def _archive(files: dict[str, bytes]) -> io.BytesIO:
    """Return a tar file in which all is owned by root and dated alike, so that equal files are equal layers."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(data))
    buffer.seek(0)
    return buffer


@contextmanager
def _engine_errors(failure: str) -> Iterator[None]:
    """Turn the errors of engine and connection into UsageError: nothing of a trial has started yet."""
    from docker.errors import DockerException, ImageNotFound
    from requests.exceptions import RequestException

    try:
        yield
    except ImageNotFound as error:
        raise UsageError(f"{failure}: no such image. `dataclaw image build` or `dataclaw image load FILE`") from error
    except (DockerException, RequestException) as error:
        raise UsageError(f"{failure}: {error}") from error
