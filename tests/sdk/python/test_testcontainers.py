"""Testcontainers for Python, as it is published, starts dayfly as its emulator.

There is no Docker here. Its client is replaced by one that starts the binary, with the
environment of our image and of the container, and that shows its output as the container's
log. A published port is the same port of a loopback address that nobody else has.
"""

import io
import os
import random
import re
import subprocess
import tarfile
import warnings
from pathlib import Path
from string import Template

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from testcontainers.core import container as core
from testcontainers.core.config import ConnectionMode

with warnings.catch_warnings():
    # It uses parts of its own that it has given up.
    warnings.simplefilter("ignore", DeprecationWarning)
    from testcontainers.community.cosmosdb import CosmosDBNoSQLEndpointContainer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ROOT = Path(__file__).parents[3]
DOCKERFILE = ROOT / "Dockerfile"
PAGE = ROOT / "docs/ci.md"
OWN_KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def image_environment():
    """What the image has in its environment."""
    lines = DOCKERFILE.read_text().replace("\\\n", " ")
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)", lines, re.MULTILINE))
    [variables] = re.findall(r"^ENV (.*)", lines, re.MULTILINE)
    pairs = (variable.split("=", 1) for variable in variables.split())
    return {name: Template(value).substitute(arguments) for name, value in pairs}


class Container:
    """A process in the place of a container. What is at `/` in it is in `root`."""

    id = short_id = "dayfly"

    def __init__(self, root, ip, command, environment):
        self._root, self._ip, self._command = root, ip, command or []
        paths = {name: self._path(value) for name, value in image_environment().items()}
        for folder in ["/data", str(Path(image_environment()["DAYFLY_TLS_EXPORT"]).parent)]:
            Path(self._path(folder)).mkdir(parents=True, exist_ok=True)
        self._environment = {**paths, "DAYFLY_LISTEN": f"{ip}:8081", **environment}
        self._process = None

    def _path(self, value):
        return str(self._root) + value if value.startswith("/") else value

    def start(self):
        with open(self._root / "stdout", "wb") as out, open(self._root / "stderr", "wb") as errors:
            self._process = subprocess.Popen(
                [os.environ["DAYFLY_BIN"], *self._command],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
            )

    def reload(self):
        pass

    @property
    def status(self):
        return "running" if self._process.poll() is None else "exited"

    def logs(self, stdout=True, stderr=True):
        streams = [name for name, wanted in [("stdout", stdout), ("stderr", stderr)] if wanted]
        return b"".join((self._root / name).read_bytes() for name in streams)

    def get_archive(self, path):
        """As Docker does it: a link at the end of the path is not followed."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.add(self._path(path), arcname=Path(path).name)
        return [archive.getvalue()], {}

    def remove(self, force, v):
        self._process.kill()
        self._process.wait()


class Docker:
    """What the library asks of Docker."""

    def __init__(self, root, ip):
        self._root, self._ip = root, ip
        self.client = self

    def __call__(self):
        return self

    def create(self, image, command, environment, ports, **_):
        assert ports == {"8081": 8081}
        return Container(self._root, self._ip, command, environment)

    def start(self, container):
        container.start()

    def get_connection_mode(self):
        return ConnectionMode.docker_host

    def host(self):
        return self._ip

    def port(self, container, port):
        return port

    def close(self):
        pass


@pytest.fixture
def docker(tmp_path, monkeypatch):
    ip = "127." + ".".join(str(random.randint(2, 250)) for _ in range(3))
    monkeypatch.setattr(core, "DockerClient", Docker(tmp_path, ip))
    monkeypatch.setattr(core.c, "ryuk_disabled", True)
    for name in ["no_proxy", "NO_PROXY"]:
        monkeypatch.setenv(name, ip)


def write_and_read(client):
    database = client.create_database("shop")
    carts = database.create_container("carts", PartitionKey("/pk"), default_ttl=3600)
    carts.create_item({"id": "1", "pk": "x"})
    assert carts.read_item("1", "x")["pk"] == "x"
    client.delete_database(database)


def test_the_emulator_starts_and_is_trusted_by_its_certificate(docker, tmp_path, monkeypatch):
    with CosmosDBNoSQLEndpointContainer(image="dayfly") as emulator:
        with emulator.insecure_sync_client() as client:
            write_and_read(client)

        pem = emulator.server_certificate_pem
        assert b"PRIVATE" not in pem
        trusted = tmp_path / "emulator.pem"
        trusted.write_bytes(pem)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(trusted))
        with CosmosClient(emulator.url, emulator.key) as client:
            write_and_read(client)


def test_what_is_set_takes_effect_or_is_named(docker, tmp_path):
    emulator = CosmosDBNoSQLEndpointContainer(
        image="dayfly", key=OWN_KEY, partition_count=5, enable_data_persistence=True
    )
    with emulator:
        with emulator.insecure_sync_client() as client:
            write_and_read(client)
        stdout, stderr = (log.decode() for log in emulator.get_logs())
        assert f"Data: {tmp_path}/data\n" in stdout
        assert OWN_KEY not in stdout
        assert "AZURE_COSMOS_EMULATOR_PARTITION_COUNT has no effect: " in stderr
        assert len(stderr.splitlines()) == 1


def test_an_emulator_for_tests_keeps_its_data_in_memory_and_has_a_clock(docker):
    emulator = CosmosDBNoSQLEndpointContainer(image="dayfly", command=["--memory"])
    with emulator.with_env("DAYFLY_TEST_CLOCK", "1"):
        stdout = emulator.get_logs()[0].decode()
        assert "Data: in memory" in stdout and "Clock: a test clock" in stdout
        with emulator.insecure_sync_client() as client:
            write_and_read(client)


def test_the_sample_of_the_page_runs(docker):
    [sample] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(sample, PAGE.name, "exec"), names := {})
    assert names["emulator"].get_wrapped_container().status == "exited"
