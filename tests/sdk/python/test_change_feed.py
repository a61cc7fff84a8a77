"""The change feed: the latest versions, and all of them with what was deleted or expired."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError


def read(container, **start):
    """The changes, and the token for what comes after."""
    changes = list(container.query_items_change_feed(**start))
    return changes, container.client_connection.last_response_headers["etag"]


def ids(changes):
    return [change["id"] for change in changes]


def shown(change):
    """What happened to which item."""
    metadata = change["metadata"]
    expired = " by its ttl" if metadata.get("timeToLiveExpired") else ""
    return f"{metadata['operationType']} {change['current'].get('id') or metadata['id']}{expired}"


def await_change(container, token, wanted):
    """Reads on until a change comes; the background tells what expired."""
    told = []
    deadline = time.monotonic() + 20
    while wanted not in told:
        assert time.monotonic() < deadline, told
        changes, token = read(container, continuation=token, mode="AllVersionsAndDeletes")
        told += [shown(change) for change in changes]
    return told


def test_latest_versions_come_once(container):
    for n in range(5):
        container.create_item({"id": str(n), "pk": "x", "n": 0})
    container.upsert_item({"id": "1", "pk": "x", "n": 1})
    container.delete_item("2", "x")
    changes, token = read(container, start_time="Beginning")
    assert ids(changes) == ["0", "3", "4", "1"]
    assert [change["_lsn"] for change in changes] == sorted(change["_lsn"] for change in changes)
    assert read(container, continuation=token)[0] == []
    container.create_item({"id": "5", "pk": "y"})
    assert ids(read(container, continuation=token)[0]) == ["5"]
    assert ids(read(container, start_time="Beginning", partition_key="y")[0]) == ["5"]
    assert read(container, start_time="Now")[0] == []


def test_pages_have_as_many_as_they_may(container):
    for n in range(5):
        container.create_item({"id": str(n), "pk": "x"})
    pages = container.query_items_change_feed(start_time="Beginning", max_item_count=2).by_page()
    assert [len(list(page)) for page in pages] == [2, 2, 1]


@pytest.mark.parametrize("policy", [None, {"retentionDuration": 10}])
def test_every_version_and_its_end(server, make_container, policy):
    container = make_container(default_ttl=-1, change_feed_policy=policy)
    mode = {"mode": "AllVersionsAndDeletes"}
    changes, token = read(container, start_time="Now", **mode)
    assert changes == []
    container.create_item({"id": "a", "pk": "x", "n": 0})
    container.upsert_item({"id": "a", "pk": "x", "n": 1})
    container.delete_item("a", "x")
    container.create_item({"id": "b", "pk": "x", "ttl": 5})
    changes, after = read(container, continuation=token, **mode)
    create, replace, delete, _ = changes
    told = [shown(change) for change in changes]
    assert told == ["create a", "replace a", "delete a", "create b"]
    assert replace["metadata"]["previousImageLSN"] == create["metadata"]["lsn"]
    assert delete["metadata"]["previousImageLSN"] == replace["metadata"]["lsn"]
    assert delete["current"] == {}
    assert delete["metadata"]["partitionKey"] == {"pk": "x"}
    assert delete["previous"]["n"] == 1
    server.advance(5)
    assert await_change(container, after, "delete b by its ttl") == ["delete b by its ttl"]
    _, end = read(container, continuation=after, **mode)
    assert read(container, continuation=end, **mode)[0] == []


def test_every_version_is_not_told_from_the_beginning(make_container):
    container = make_container(change_feed_policy={"retentionDuration": 0})
    with pytest.raises(CosmosHttpResponseError) as refused:
        read(container, start_time="Now", mode="AllVersionsAndDeletes")
    assert refused.value.status_code == 400


def test_a_key_is_found_among_very_many_others(make_container):
    """The SDK takes an empty page for the end: so there is none, whatever others wrote."""
    quiet = {"indexingMode": "none", "automatic": False}
    container = make_container(indexing_policy=quiet)

    def batch(number, key):
        creates = [("create", ({"id": f"{number}-{n}", "pk": key},)) for n in range(100)]
        container.execute_item_batch(creates, key)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: batch(number, f"other{number % 40}"), range(510)))
        list(threads.map(lambda number: batch(number, "large"), range(12)))
    container.create_item({"id": "one", "pk": "small"})
    container.create_item({"id": "two", "pk": "small"})
    small = {"start_time": "Beginning", "partition_key": "small"}
    assert ids(read(container, **small)[0]) == ["one", "two"]
    large, token = read(container, start_time="Beginning", partition_key="large")
    assert len(set(ids(large))) == len(large) == 1200
    assert read(container, continuation=token)[0] == []
