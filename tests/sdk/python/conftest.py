"""What every test gets: a server, a client, a database of its own.

All tests run twice: over http with a server that keeps its data in memory,
and over https with one that keeps it on disk.
"""

import uuid
from tempfile import TemporaryDirectory

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from dayfly import Server


@pytest.fixture(scope="session", params=["http", "https"])
def scheme(request):
    return request.param


@pytest.fixture(scope="session")
def server(scheme):
    with TemporaryDirectory() as folder:
        storage = ["--memory"] if scheme == "http" else ["--data", folder]
        with Server(*storage) as server:
            yield server


@pytest.fixture(scope="session")
def client(server, scheme):
    with CosmosClient(server.address(scheme), server.key) as client:
        yield client


@pytest.fixture
def database(client):
    database = client.create_database(f"db-{uuid.uuid4()}")
    yield database
    client.delete_database(database)


@pytest.fixture
def make_container(database):
    """Makes a container whose partition key is `/pk`, unless told otherwise."""

    def make(partition_key="/pk", **definition):
        if isinstance(partition_key, str):
            partition_key = PartitionKey(partition_key)
        return database.create_container(f"c-{uuid.uuid4()}", partition_key, **definition)

    return make


@pytest.fixture
def container(make_container):
    """A container in which nothing expires."""
    return make_container()
