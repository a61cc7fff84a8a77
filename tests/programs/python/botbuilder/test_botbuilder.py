"""The Bot Framework keeps the state of conversations here, by CosmosDbPartitionedStorage."""

import asyncio

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosAccessConditionFailedError
from botbuilder.azure import CosmosDbPartitionedConfig, CosmosDbPartitionedStorage
from botbuilder.core import ConversationState
from botbuilder.core.adapters import TestAdapter

MONTH = 30 * 24 * 60 * 60


class Note:
    def __init__(self, text, e_tag=None):
        self.text = text
        self.e_tag = e_tag


@pytest.fixture
def make_storage(dayfly):
    def make(**more):
        return CosmosDbPartitionedStorage(
            CosmosDbPartitionedConfig(
                cosmos_db_endpoint=dayfly.endpoint,
                auth_key=dayfly.key,
                database_id="bots",
                container_id="state",
                **more,
            )
        )

    return make


def counting_bot(storage):
    """A bot that says how many messages a conversation has had."""
    state = ConversationState(storage)
    count = state.create_property("count")

    async def answer(turn):
        number = (await count.get(turn) or 0) + 1
        await count.set(turn, number)
        await turn.send_activity(f"message {number}")
        await state.save_changes(turn)

    return TestAdapter(answer)


async def say(bot, expected):
    step = await bot.send("hello")
    await step.assert_reply(expected)


def test_items_are_written_read_and_deleted(make_storage):
    async def play():
        storage = make_storage()
        keys = ["plain", "a/b\\c?d#e*f", "Zoë 你好 🪰", "k" * 255]
        assert await storage.read(keys) == {}
        await storage.write({key: Note(f"of {key}") for key in keys})
        found = await storage.read([*keys, "missing"])
        assert {key: note.text for key, note in found.items()} == {key: f"of {key}" for key in keys}

        await storage.delete(["plain", "missing"])
        assert sorted(await make_storage().read(keys)) == sorted(keys[1:])

    asyncio.run(play())


def test_an_old_version_is_not_written(make_storage):
    async def play():
        storage = make_storage()
        await storage.write({"note": Note("first")})
        mine = (await storage.read(["note"]))["note"]
        theirs = (await storage.read(["note"]))["note"]
        theirs.text = "second"
        await storage.write({"note": theirs})

        mine.text = "lost"
        with pytest.raises(CosmosAccessConditionFailedError):
            await storage.write({"note": mine})
        mine.e_tag = "*"
        await storage.write({"note": mine})
        assert (await storage.read(["note"]))["note"].text == "lost"

    asyncio.run(play())


@pytest.mark.parametrize("more", [{}, {"key_suffix": "-suffix"}, {"compatibility_mode": True}])
def test_a_bot_goes_on_where_another_process_left_off(make_storage, more):
    async def play():
        for number in [1, 2, 3]:
            await say(counting_bot(make_storage(**more)), f"message {number}")

    asyncio.run(play())


def test_a_conversation_expires_a_month_after_its_last_message(dayfly, make_storage):
    async def play():
        with CosmosClient(dayfly.endpoint, dayfly.key) as client:
            bots = client.create_database("bots")
            bots.create_container("state", PartitionKey("/id"), default_ttl=MONTH)

        bot = counting_bot(make_storage())
        await say(bot, "message 1")
        dayfly.advance(MONTH - 1)
        await say(bot, "message 2")
        dayfly.advance(MONTH - 1)
        await say(bot, "message 3")
        dayfly.advance(MONTH)
        await say(bot, "message 1")

    asyncio.run(play())
