"""An image that is not ours: Node, OpenClaw and Python are in it, but nothing of this project, and no user `agent`."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from harness import SUM_STEPS, Bench

from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.provision.image import inspect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from docker import DockerClient

pytest_plugins = ("engine_fixture",)
pytestmark = pytest.mark.docker

PLAIN = "dataclaw:local-plain"
RECIPE = f"""
FROM {PLAIN}
USER root
RUN rm -rf /opt/dataclaw && userdel agent
"""
WHO_AND_WHERE = """
import os, pathlib, sys
assert (os.getuid(), os.getcwd(), pathlib.Path.home()) == (0, '/tmp_workspace', pathlib.Path('/root'))
assert 'CapEff:\\t0000000000000000' in open('/proc/self/status').read()
assert not os.path.exists('/opt/dataclaw/compile-cache')
"""


@pytest.fixture(scope="module")
def foreign(client: DockerClient) -> Iterator[str]:
    """The image's name; the image is there while the module's tests run."""
    try:
        inspect(client, PLAIN)
    except UsageError as error:
        pytest.skip(str(error))
    name = "dataclaw:test-foreign"
    client.images.build(fileobj=io.BytesIO(RECIPE.encode()), tag=name, rm=True, forcerm=True)
    yield name
    client.images.remove(name)


@pytest.mark.parametrize("profile", ["upstream", "lean"])
def test_a_trial_of_the_real_openclaw(foreign: str, tmp_path: Path, profile: str) -> None:
    bench = Bench(tmp_path / "bench")
    bench.env["DOCKER_IMAGE"] = foreign
    bench.add(steps=(WHO_AND_WHERE + SUM_STEPS[0], SUM_STEPS[1]), timeout=120)
    options = ("--dataclaw-model=oracle", "--dataclaw-agent=openclaw", f"--dataclaw-profile={profile}")
    result = bench.run(*options, "-p", "no:xdist")
    assert result.code == 0, result.out
    (record,) = result.records()
    assert (record["turns"], record["answer"], record["scores"]["acc"]) == (3, "60840", 1.0)
    (folder,) = (path.parent for path in bench.output.glob("*/*/record.json"))
    assert (folder / "gateway.log").stat().st_size > 0
    assert (folder / "chat.jsonl").stat().st_size > 0
