"""The Microsoft 365 Agents SDK keeps the state of agents here, by the asynchronous client."""

import asyncio

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from microsoft_agents.hosting.core.storage import StoreItem
from microsoft_agents.storage.cosmos import CosmosDBStorage, CosmosDBStorageConfig

DAY = 24 * 60 * 60


class Note(StoreItem):
    def __init__(self, text):
        self.text = text

    def store_item_to_json(self):
        return {"text": self.text}

    @staticmethod
    def from_json_to_store_item(json_data):
        return Note(json_data["text"])


@pytest.fixture
def play(dayfly):
    """Plays a test with a new storage."""

    def play(test, **more):
        async def with_storage():
            config = CosmosDBStorageConfig(
                cosmos_db_endpoint=dayfly.endpoint,
                auth_key=dayfly.key,
                database_id="agents",
                container_id="state",
                **more,
            )
            storage = CosmosDBStorage(config)
            try:
                await test(storage)
            finally:
                await storage._close()

        asyncio.run(with_storage())

    return play


async def texts(storage, *keys):
    found = await storage.read(list(keys), target_cls=Note)
    return {key: note.text for key, note in found.items()}


@pytest.mark.parametrize("more", [{}, {"container_throughput": 800}, {"key_suffix": "-suffix"}])
def test_items_are_written_read_and_deleted(play, more):
    async def write(storage):
        assert await texts(storage, "a", "b") == {}
        await storage.write({"a": Note("one"), "b/?": Note("two"), "c": Note("three")})
        await storage.write({"a": Note("four")})
        await storage.delete(["c", "missing"])

    async def read(storage):
        assert await texts(storage, "a", "b/?", "c") == {"a": "four", "b/?": "two"}

    play(write, **more)
    play(read, **more)


def test_a_container_without_a_partition_key_works(dayfly, play):
    with CosmosClient(dayfly.endpoint, dayfly.key) as client:
        agents = client.create_database("agents")
        # What the first version of the Bot Framework made: no partition key.
        agents.client_connection.CreateContainer(agents.database_link, {"id": "state"})

    async def test(storage):
        await storage.write({"a": Note("one")})
        assert await texts(storage, "a") == {"a": "one"}
        await storage.delete(["a"])
        assert await texts(storage, "a") == {}

    play(test, compatibility_mode=True)


def test_state_expires_a_day_after_its_last_write(dayfly, play):
    with CosmosClient(dayfly.endpoint, dayfly.key) as client:
        agents = client.create_database("agents")
        agents.create_container("state", PartitionKey("/id"), default_ttl=DAY)

    async def test(storage):
        await storage.write({"a": Note("one"), "b": Note("two")})
        dayfly.advance(DAY - 1)
        await storage.write({"a": Note("one")})
        dayfly.advance(1)
        assert await texts(storage, "a", "b") == {"a": "one"}
        dayfly.advance(DAY - 1)
        assert await texts(storage, "a", "b") == {}

    play(test)
