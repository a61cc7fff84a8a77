"""Deleting all items of a partition key: gone at the answer, and only those."""

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue


def fill(container, *keys, count=3):
    """Writes items with the same ids under each of these keys."""
    for key in keys:
        for n in range(count):
            container.create_item({"id": str(n), "pk": key, "n": n})


def keys(container):
    """The keys of all items, each as often as there are items."""
    return sorted(item["pk"] for item in container.read_all_items())


def count(container, **where):
    options = where or {"enable_cross_partition_query": True}
    (count,) = container.query_items("SELECT VALUE COUNT(1) FROM c", **options)
    return count


def test_all_items_of_the_key_are_gone_and_others_stay(container):
    fill(container, "x", "y")
    container.delete_all_items_by_partition_key("x")
    for n in range(3):
        with pytest.raises(CosmosResourceNotFoundError):
            container.read_item(str(n), "x")
        assert container.read_item(str(n), "y")["n"] == n
    assert keys(container) == ["y"] * 3
    assert list(container.query_items("SELECT * FROM c", partition_key="x")) == []


def test_counts_are_right(container):
    fill(container, "x", "y")
    container.delete_all_items_by_partition_key("x")
    assert (count(container), count(container, partition_key="x")) == (3, 0)
    container.create_item({"id": "0", "pk": "x"})
    assert (count(container), count(container, partition_key="x")) == (4, 1)
    by_key = container.query_items(
        "SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk", enable_cross_partition_query=True
    )
    assert sorted(by_key, key=lambda row: row["pk"]) == [
        {"pk": "x", "n": 1},
        {"pk": "y", "n": 3},
    ]


def test_what_is_written_later_lives(container):
    fill(container, "x")
    container.delete_all_items_by_partition_key("x")
    container.create_item({"id": "0", "pk": "x", "n": "new"})
    container.upsert_item({"id": "1", "pk": "x", "n": "new"})
    container.execute_item_batch([("create", ({"id": "2", "pk": "x", "n": "new"},))], "x")
    items = list(container.query_items("SELECT * FROM c", partition_key="x"))
    assert sorted(item["id"] for item in items) == ["0", "1", "2"]
    assert {item["n"] for item in items} == {"new"}


def test_what_is_gone_cannot_be_changed(container):
    fill(container, "x")
    container.delete_all_items_by_partition_key("x")
    with pytest.raises(CosmosResourceNotFoundError):
        container.replace_item("0", {"id": "0", "pk": "x"})
    with pytest.raises(CosmosResourceNotFoundError):
        container.delete_item("0", "x")
    assert count(container) == 0


def test_again_and_for_a_key_that_nobody_has(container):
    fill(container, "x", "y")
    for key in ["nobody", "x", "x"]:
        container.delete_all_items_by_partition_key(key)
    assert keys(container) == ["y"] * 3
    fill(container, "x", count=2)
    container.delete_all_items_by_partition_key("x")
    assert keys(container) == ["y"] * 3


@pytest.mark.parametrize(
    "value, key",
    [
        ({"pk": ""}, ""),
        ({"pk": 7}, 7),
        ({"pk": True}, True),
        ({"pk": None}, NullPartitionKeyValue),
        ({}, NonePartitionKeyValue),
    ],
)
def test_every_kind_of_key(container, value, key):
    container.create_item({"id": "a", **value})
    container.create_item({"id": "b", "pk": "x"})
    container.delete_all_items_by_partition_key(key)
    assert [item["id"] for item in container.read_all_items()] == ["b"]


def test_a_hierarchical_key_is_whole(make_container):
    container = make_container(PartitionKey(["/tenant", "/user"], kind="MultiHash"))
    for user in [7, 8]:
        container.create_item({"id": "a", "tenant": "t", "user": user})
    container.delete_all_items_by_partition_key(["t", 7])
    assert [item["user"] for item in container.read_all_items()] == [8]
    with pytest.raises(CosmosHttpResponseError) as error:
        container.delete_all_items_by_partition_key(["t"])
    assert error.value.status_code == 400
    assert count(container) == 1


def test_items_written_later_expire_exactly(make_container, server):
    container = make_container(default_ttl=10)
    fill(container, "x")
    server.advance(5)
    container.delete_all_items_by_partition_key("x")
    container.create_item({"id": "0", "pk": "x"})
    server.advance(9)
    assert count(container) == 1
    server.advance(1)
    assert count(container) == 0
