"""Transactional batches: all of it or nothing, in one partition and one second."""

from copy import deepcopy

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue


def item(id, **more):
    return {"id": id, "pk": "x", **more}


def create(id, **more):
    return ("create", (item(id, **more),))


def read(id):
    return ("read", (id,))


def statuses(results):
    return [result["statusCode"] for result in results]


def ids(container):
    return sorted(item["id"] for item in container.read_all_items())


def assert_fails(container, operations, expected):
    """The batch fails, its operations with these statuses, and nothing is written."""
    before = list(container.read_all_items())
    with pytest.raises(CosmosBatchOperationError) as error:
        # The SDK takes the conditions out of the operations that it is given.
        container.execute_item_batch(deepcopy(operations), "x")
    assert statuses(error.value.operation_responses) == expected
    (status,) = set(expected) - {424}
    assert error.value.status_code == status
    assert error.value.error_index == expected.index(status)
    assert list(container.read_all_items()) == before


def test_every_kind_of_operation(container):
    container.create_item(item("old"))
    results = container.execute_item_batch(
        [
            create("a", n=1),
            ("upsert", (item("b"),)),
            ("replace", ("old", item("old", n=2))),
            read("a"),
            ("delete", ("b",)),
        ],
        "x",
    )
    assert statuses(results) == [201, 201, 200, 200, 204]
    assert results[0]["resourceBody"] == results[3]["resourceBody"]
    assert results[0]["eTag"] == results[0]["resourceBody"]["_etag"]
    assert results[2]["resourceBody"]["n"] == 2
    assert "resourceBody" not in results[4]
    assert ids(container) == ["a", "old"]
    assert container.read_item("old", "x")["_etag"] == results[2]["eTag"]


def test_an_operation_sees_those_before_it(container):
    results = container.execute_item_batch(
        [
            create("a", n=1),
            ("replace", ("a", item("a", n=2))),
            read("a"),
            ("delete", ("a",)),
            create("a", n=3),
            ("upsert", (item("a", n=4),)),
        ],
        "x",
    )
    assert statuses(results) == [201, 200, 200, 204, 201, 200]
    assert results[2]["resourceBody"]["n"] == 2
    assert container.read_item("a", "x")["n"] == 4


@pytest.mark.parametrize(
    "failing, status",
    [
        (create("old"), 409),
        (create("a"), 409),
        (read("nobody"), 404),
        (("delete", ("nobody",)), 404),
        (("replace", ("nobody", item("nobody"))), 404),
        (("create", ({"id": "b", "pk": "y"},)), 400),
        (create("b", ttl=0), 400),
        (("replace", ("old", item("old", n=2)), {"if_match_etag": "wrong"}), 412),
        (("upsert", (item("old", n=2),), {"if_match_etag": "wrong"}), 412),
    ],
)
def test_one_that_fails_takes_all_with_it(container, failing, status):
    container.create_item(item("old", n=1))
    assert_fails(container, [create("a"), failing, create("c")], [424, status, 424])


def test_conditions_are_met(container):
    etag = container.create_item(item("a"))["_etag"]
    replace = ("replace", ("a", item("a", n=1)), {"if_match_etag": etag})
    container.execute_item_batch([replace], "x")
    with pytest.raises(CosmosBatchOperationError) as error:
        container.execute_item_batch([("replace", ("a", item("a")), {"if_match_etag": etag})], "x")
    assert error.value.status_code == 412
    assert container.read_item("a", "x")["n"] == 1


def test_a_batch_is_one_commit_of_one_second(container, server):
    results = container.execute_item_batch([create(str(n)) for n in range(100)], "x")
    assert statuses(results) == [201] * 100
    assert {result["resourceBody"]["_ts"] for result in results} == {server.now()}
    headers = results.get_response_headers()
    sum_of_charges = sum(result["requestCharge"] for result in results)
    assert float(headers["x-ms-request-charge"]) == pytest.approx(sum_of_charges, abs=0.1)


@pytest.mark.parametrize("count", [0, 101])
def test_a_batch_has_one_to_a_hundred_operations(container, count):
    with pytest.raises(CosmosHttpResponseError) as error:
        container.execute_item_batch([create(str(n)) for n in range(count)], "x")
    assert error.value.status_code == 400
    assert ids(container) == []


def test_a_batch_has_at_most_two_megabytes(container):
    with pytest.raises(CosmosHttpResponseError) as error:
        container.execute_item_batch([create(id, text="x" * 1_500_000) for id in "ab"], "x")
    assert error.value.status_code == 413
    assert ids(container) == []


def test_ids_may_be_those_of_other_partitions(container):
    container.create_item({"id": "a", "pk": "y"})
    assert statuses(container.execute_item_batch([create("a")], "x")) == [201]
    with pytest.raises(CosmosBatchOperationError) as error:
        container.execute_item_batch([read("a")], "z")
    assert error.value.status_code == 404


@pytest.mark.parametrize(
    "value, key",
    [
        ({"pk": 7}, 7),
        ({"pk": True}, True),
        ({"pk": None}, NullPartitionKeyValue),
        ({}, NonePartitionKeyValue),
    ],
)
def test_every_kind_of_key(container, value, key):
    create = ("create", ({"id": "a", **value},))
    assert statuses(container.execute_item_batch([create, read("a")], key)) == [201, 200]
    assert container.read_item("a", key)["id"] == "a"


def test_a_hierarchical_key_is_whole(make_container):
    container = make_container(PartitionKey(["/tenant", "/user"], kind="MultiHash"))
    create = ("create", ({"id": "a", "tenant": "t", "user": 7},))
    assert statuses(container.execute_item_batch([create, read("a")], ["t", 7])) == [201, 200]
    with pytest.raises(CosmosHttpResponseError) as error:
        container.execute_item_batch([read("a")], ["t"])
    assert error.value.status_code == 400


def test_items_of_a_batch_expire_exactly(make_container, server):
    container = make_container(default_ttl=100)
    container.create_item(item("old"))
    server.advance(50)
    container.execute_item_batch(
        [
            create("short", ttl=10),
            create("default"),
            create("never", ttl=-1),
            ("replace", ("old", item("old", ttl=10))),
        ],
        "x",
    )
    server.advance(9)
    assert ids(container) == ["default", "never", "old", "short"]
    server.advance(1)
    assert ids(container) == ["default", "never"]
    server.advance(89)
    assert ids(container) == ["default", "never"]
    server.advance(1)
    assert ids(container) == ["never"]


def test_what_has_expired_is_not_there_for_a_batch(make_container, server):
    container = make_container(default_ttl=10)
    container.create_item(item("a"))
    server.advance(10)
    assert_fails(container, [create("b"), read("a")], [424, 404])
    assert_fails(container, [("replace", ("a", item("a")))], [404])
    assert_fails(container, [("delete", ("a",)), create("b")], [404, 424])
    results = container.execute_item_batch([create("a", n=2), read("a")], "x")
    assert statuses(results) == [201, 200]
    server.advance(10)
    assert ids(container) == []


def test_a_client_that_wants_no_content_gets_that_of_reads_only(server, scheme, database):
    database.create_container("c", PartitionKey("/pk"))
    with CosmosClient(server.address(scheme), server.key, no_response_on_write=True) as client:
        container = client.get_database_client(database.id).get_container_client("c")
        results = container.execute_item_batch([create("a"), read("a")], "x")
    assert statuses(results) == [201, 200]
    assert "resourceBody" not in results[0] and results[0]["eTag"]
    assert results[1]["resourceBody"]["id"] == "a"


def patch(id, *operations, **more):
    return ("patch", (id, list(operations)), more)


def test_patches_in_a_batch(container):
    add = {"op": "add", "path": "/n", "value": 1}
    more = {"op": "incr", "path": "/n", "value": 2}
    if_three = {"filter_predicate": "from c where c.n = 3"}
    results = container.execute_item_batch(
        [create("a"), patch("a", add), patch("a", more), patch("a", more, **if_three)], "x"
    )
    assert statuses(results) == [201, 200, 200, 200]
    assert [result["resourceBody"].get("n") for result in results] == [None, 1, 3, 5]
    assert_fails(container, [create("b"), patch("a", more, **if_three)], [424, 412])
    child = {"op": "add", "path": "/no/child", "value": 1}
    assert_fails(container, [create("b"), patch("a", child)], [424, 400])
    assert_fails(container, [patch("b", add), create("b")], [404, 424])
