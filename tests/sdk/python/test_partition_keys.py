"""Partition keys of every kind the SDK can send."""

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError, CosmosResourceNotFoundError
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue


def assert_item_lives(container, item, partition_key):
    """Takes the item through all point operations under its partition key."""
    id = item["id"]
    container.create_item(item)
    assert container.read_item(id, partition_key)["id"] == id
    container.replace_item(id, {**item, "replaced": True})
    container.upsert_item({**item, "replaced": "twice"})
    assert container.read_item(id, partition_key)["replaced"] == "twice"
    container.delete_item(id, partition_key)
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item(id, partition_key)


@pytest.mark.parametrize(
    "value",
    ["x", "", "Zoë 你好 🪰", "\"quoted\" \\ 'text'", "a" * 500, 0, 1, -7, 1.5, 1e300, True, False],
)
def test_a_key_may_be_any_string_number_or_boolean(container, value):
    assert_item_lives(container, {"id": "a", "pk": value}, value)


def test_a_key_may_be_null(container):
    assert_item_lives(container, {"id": "a", "pk": None}, NullPartitionKeyValue)


def test_a_key_may_be_missing(container):
    assert_item_lives(container, {"id": "a"}, NonePartitionKeyValue)


def test_a_key_may_be_nested(make_container):
    container = make_container("/address/city")
    assert_item_lives(container, {"id": "a", "address": {"city": "Bern"}}, "Bern")
    assert_item_lives(container, {"id": "a", "address": "none"}, NonePartitionKeyValue)


def test_a_key_path_may_be_quoted(make_container):
    container = make_container('/"postal code"')
    assert_item_lives(container, {"id": "a", "postal code": 3000}, 3000)


def test_a_key_may_be_hierarchical(make_container):
    paths = ["/tenant", "/user", "/session/id"]
    container = make_container(PartitionKey(paths, kind="MultiHash"))

    item = {"id": "a", "tenant": "t", "user": 7, "session": {"id": "s"}}
    assert_item_lives(container, item, ["t", 7, "s"])


def test_a_key_may_be_of_version_1(make_container):
    container = make_container(PartitionKey("/pk", version=1))
    for value in ["x", 1, True]:
        assert_item_lives(container, {"id": "a", "pk": value}, value)


def test_the_same_id_in_every_kind_of_partition_is_another_item(container):
    keys = {
        "string": ("1", "1"),
        "number": (1, 1),
        "true": (True, True),
        "null": (None, NullPartitionKeyValue),
    }
    for kind, (value, _) in keys.items():
        container.create_item({"id": "a", "pk": value, "kind": kind})
    container.create_item({"id": "a", "kind": "missing"})

    for kind, (_, partition_key) in keys.items():
        assert container.read_item("a", partition_key)["kind"] == kind
    assert container.read_item("a", NonePartitionKeyValue)["kind"] == "missing"
    assert len(list(container.read_all_items())) == 5


def test_an_item_is_not_found_under_another_key(container):
    container.create_item({"id": "a", "pk": "x"})
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("a", "y")
    with pytest.raises(CosmosResourceNotFoundError):
        container.delete_item("a", "y")


def test_a_hierarchical_key_must_be_complete(make_container):
    container = make_container(PartitionKey(["/tenant", "/user"], kind="MultiHash"))
    container.create_item({"id": "a", "tenant": "t", "user": "u"})
    with pytest.raises((CosmosHttpResponseError, ValueError)):
        container.read_item("a", ["t"])
