"""Time to live, second by second. No test waits: each moves the server's clock."""

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import (
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

DAY = 24 * 60 * 60
NINETY_DAYS = 90 * DAY
YEAR = 365 * DAY


@pytest.fixture
def lives(container):
    """Whether the item `a` is there, for a read and for the list alike."""

    def lives(in_container=container):
        listed = [item["id"] for item in in_container.read_all_items()]
        try:
            in_container.read_item("a", "x")
        except CosmosResourceNotFoundError:
            assert "a" not in listed
            return False
        assert "a" in listed
        return True

    return lives


def set_default_ttl(database, container, seconds):
    """Reads the container, changes its default and replaces it."""
    definition = container.read()
    database.replace_container(
        container,
        PartitionKey("/pk"),
        indexing_policy=definition["indexingPolicy"],
        default_ttl=seconds,
    )


def test_an_item_expires_90_days_after_its_write_by_the_containers_default(
    make_container, server, lives
):
    container = make_container(default_ttl=NINETY_DAYS)
    container.create_item({"id": "a", "pk": "x"})

    server.advance(NINETY_DAYS - 1)
    assert lives(container)
    server.advance(1)
    assert not lives(container)


def test_an_item_expires_90_days_after_its_write_by_its_own_ttl(make_container, server, lives):
    container = make_container(default_ttl=-1)
    container.create_item({"id": "a", "pk": "x", "ttl": NINETY_DAYS})

    server.advance(NINETY_DAYS - 1)
    assert lives(container)
    server.advance(1)
    assert not lives(container)


def test_every_write_extends_an_items_life(make_container, server, lives):
    container = make_container(default_ttl=DAY)
    item = {"id": "a", "pk": "x", "ttl": 100}
    container.create_item(item)

    for write in [
        lambda: container.replace_item("a", item),
        lambda: container.upsert_item(item),
    ]:
        server.advance(99)
        assert write()["_ts"] == server.now()
    server.advance(99)
    assert lives(container)
    server.advance(1)
    assert not lives(container)


def test_reading_extends_nothing(make_container, server, lives):
    container = make_container(default_ttl=100)
    container.create_item({"id": "a", "pk": "x"})

    server.advance(99)
    assert lives(container)
    server.advance(1)
    assert not lives(container)


def test_a_ttl_can_be_changed(make_container, server, lives):
    container = make_container(default_ttl=DAY)
    container.create_item({"id": "a", "pk": "x", "ttl": 100})

    item = container.read_item("a", "x")
    item["ttl"] = 2000
    container.replace_item(item, item)

    server.advance(1999)
    assert container.read_item("a", "x")["ttl"] == 2000
    server.advance(1)
    assert not lives(container)


def test_a_removed_ttl_leaves_the_containers_default(make_container, server, lives):
    container = make_container(default_ttl=1000)
    container.create_item({"id": "a", "pk": "x", "ttl": 100})

    item = container.read_item("a", "x")
    del item["ttl"]
    container.replace_item(item, item)

    server.advance(999)
    assert "ttl" not in container.read_item("a", "x")
    server.advance(1)
    assert not lives(container)


def test_a_ttl_of_minus_one_never_expires(make_container, server, lives):
    container = make_container(default_ttl=100)
    container.create_item({"id": "a", "pk": "x", "ttl": -1})
    container.create_item({"id": "b", "pk": "x"})

    server.advance(10 * YEAR)
    assert lives(container)
    assert [item["id"] for item in container.read_all_items()] == ["a"]


def test_an_item_that_was_due_to_expire_can_be_kept_for_ever(make_container, server, lives):
    container = make_container(default_ttl=100)
    container.create_item({"id": "a", "pk": "x"})

    server.advance(99)
    container.replace_item("a", {"id": "a", "pk": "x", "ttl": -1})
    server.advance(10 * YEAR)
    assert lives(container)


def test_disabling_ttl_stops_expiry_and_brings_nothing_back(
    database, make_container, server, lives
):
    container = make_container(default_ttl=1000)
    container.create_item({"id": "expired", "pk": "x", "ttl": 10})
    container.create_item({"id": "a", "pk": "x"})
    container.create_item({"id": "own ttl", "pk": "x", "ttl": 100})
    server.advance(10)

    set_default_ttl(database, container, None)
    server.advance(10 * YEAR)
    assert lives(container)
    assert {item["id"] for item in container.read_all_items()} == {"a", "own ttl"}
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("expired", "x")


def test_nothing_expires_while_ttl_is_off(container, server, lives):
    container.create_item({"id": "a", "pk": "x", "ttl": 1})
    server.advance(10 * YEAR)
    assert lives()
    assert container.read_item("a", "x")["ttl"] == 1


def test_a_default_of_minus_one_expires_only_items_with_a_ttl(make_container, server, lives):
    container = make_container(default_ttl=-1)
    container.create_item({"id": "a", "pk": "x"})
    container.create_item({"id": "b", "pk": "x", "ttl": 10})

    server.advance(10)
    assert lives(container)
    assert [item["id"] for item in container.read_all_items()] == ["a"]


def test_a_new_default_counts_for_items_that_are_already_there(
    database, container, server, lives
):
    container.create_item({"id": "a", "pk": "x"})
    server.advance(500)

    set_default_ttl(database, container, 501)
    assert lives()
    server.advance(1)
    assert not lives()
    set_default_ttl(database, container, YEAR)
    assert not lives()


def test_no_operation_finds_an_expired_item(make_container, server):
    container = make_container(default_ttl=10)
    etag = container.create_item({"id": "a", "pk": "x"})["_etag"]
    server.advance(10)

    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("a", "x")
    with pytest.raises(CosmosResourceNotFoundError):
        container.replace_item("a", {"id": "a", "pk": "x"})
    with pytest.raises(CosmosResourceNotFoundError):
        container.delete_item("a", "x")

    item = container.create_item({"id": "a", "pk": "x"})
    assert item["_etag"] != etag
    assert item["_ts"] == server.now()


def test_an_upsert_over_an_expired_item_creates(make_container, server):
    container = make_container(default_ttl=10)
    old = container.create_item({"id": "a", "pk": "x"})
    server.advance(10)

    statuses = []
    new = container.upsert_item(
        {"id": "a", "pk": "x"},
        raw_response_hook=lambda response: statuses.append(response.http_response.status_code),
    )
    assert statuses == [201]
    assert new["_rid"] != old["_rid"]


def test_an_expired_item_frees_its_unique_key(make_container, server):
    container = make_container(
        default_ttl=10, unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]}
    )
    container.create_item({"id": "a", "pk": "x", "email": "zoe@example.com"})
    with pytest.raises(CosmosResourceExistsError):
        container.create_item({"id": "b", "pk": "x", "email": "zoe@example.com"})

    server.advance(10)
    container.create_item({"id": "b", "pk": "x", "email": "zoe@example.com"})


@pytest.mark.parametrize(
    ("ttl", "shown"),
    [(0, "0"), (-10, "-10"), (2**31, "2147483648"), (None, "null"), ("10", '"10"'), (1.5, "1.5")],
)
def test_a_wrong_ttl_is_refused_with_the_services_text(make_container, ttl, shown):
    container = make_container(default_ttl=-1)

    with pytest.raises(CosmosHttpResponseError) as failure:
        container.create_item({"id": "a", "pk": "x", "ttl": ttl})
    assert failure.value.status_code == 400
    message = failure.value.message.replace('\\"', '"')
    assert (
        f"The input ttl '{shown}' is invalid. Ensure to provide a nonzero positive integer less "
        "than or equal to '2147483647', or '-1' which means never expire."
    ) in message
    assert list(container.read_all_items()) == []


def test_the_largest_ttl_is_accepted(make_container, server, lives):
    container = make_container(default_ttl=2**31 - 1)
    container.create_item({"id": "a", "pk": "x", "ttl": 2**31 - 1})
    server.advance(30 * YEAR)
    assert lives(container)
