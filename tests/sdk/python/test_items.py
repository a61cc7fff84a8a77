"""Items: create, read, upsert, replace, delete, list, and what may go wrong."""

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)


def without_system_properties(item):
    return {name: value for name, value in item.items() if not name.startswith("_")}


def test_an_item_is_created_read_replaced_and_deleted(container):
    container.create_item({"id": "a", "pk": "x", "colour": "red"})
    assert container.read_item("a", "x")["colour"] == "red"

    container.replace_item("a", {"id": "a", "pk": "x", "colour": "blue"})
    assert container.read_item("a", "x")["colour"] == "blue"

    container.delete_item("a", "x")
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("a", "x")


def test_an_upsert_creates_and_then_replaces(container):
    statuses = []
    for colour in ["red", "blue"]:
        container.upsert_item(
            {"id": "a", "pk": "x", "colour": colour},
            raw_response_hook=lambda response: statuses.append(response.http_response.status_code),
        )

    assert statuses == [201, 200]
    assert container.read_item("a", "x")["colour"] == "blue"


def test_an_item_comes_back_as_it_was_sent(container):
    item = {
        "id": "a",
        "pk": "x",
        "text": "Zoë 你好 🪰 \" \\ \n \u0001",
        "numbers": [0, -1, 1.5, 1e21, 2**53, -(2**31)],
        "nothing": None,
        "flags": [True, False],
        "nested": {"empty": {}, "list": [[], [1, [2]]], "": "no name"},
    }
    container.create_item(item)
    assert without_system_properties(container.read_item("a", "x")) == item


def test_a_large_item_comes_back(container):
    # The SDK sends each letter as an escape of 6 bytes.
    container.create_item({"id": "a", "pk": "x", "text": "ä" * 300_000})
    assert container.read_item("a", "x")["text"] == "ä" * 300_000


def test_an_item_has_its_system_properties(container, server):
    item = container.create_item({"id": "a", "pk": "x"})

    assert item["_ts"] == server.now()
    assert item["_attachments"] == "attachments/"
    assert item["_self"] == f"{container.read()['_self']}docs/{item['_rid']}/"
    assert item["_etag"].startswith('"') and item["_etag"].endswith('"')
    assert container.read_item("a", "x") == item


def test_all_items_are_listed_page_by_page(container):
    for number in range(10):
        container.create_item({"id": str(number), "pk": f"pk-{number % 3}"})

    pages = [list(page) for page in container.read_all_items(max_item_count=4).by_page()]
    assert [len(page) for page in pages] == [4, 4, 2]
    ids = [item["id"] for page in pages for item in page]
    assert sorted(ids) == [str(number) for number in range(10)]


def test_the_list_of_an_empty_container_is_empty(container):
    assert list(container.read_all_items()) == []


def test_a_missing_item_is_not_found(container):
    with pytest.raises(CosmosResourceNotFoundError) as failure:
        container.read_item("a", "x")
    assert failure.value.status_code == 404
    with pytest.raises(CosmosResourceNotFoundError):
        container.replace_item("a", {"id": "a", "pk": "x"})
    with pytest.raises(CosmosResourceNotFoundError):
        container.delete_item("a", "x")


def test_an_id_can_be_used_once_in_a_partition(container):
    container.create_item({"id": "a", "pk": "x"})
    with pytest.raises(CosmosResourceExistsError) as failure:
        container.create_item({"id": "a", "pk": "x"})
    assert failure.value.status_code == 409

    container.create_item({"id": "a", "pk": "y"})


def test_an_old_etag_stops_replace_upsert_and_delete(container):
    old = container.create_item({"id": "a", "pk": "x", "version": 1})["_etag"]
    new = container.replace_item("a", {"id": "a", "pk": "x", "version": 2})["_etag"]
    assert new != old

    only_if_old = {"etag": old, "match_condition": MatchConditions.IfNotModified}
    for write in [
        lambda: container.replace_item("a", {"id": "a", "pk": "x", "version": 3}, **only_if_old),
        lambda: container.upsert_item({"id": "a", "pk": "x", "version": 3}, **only_if_old),
        lambda: container.delete_item("a", "x", **only_if_old),
    ]:
        with pytest.raises(CosmosAccessConditionFailedError) as failure:
            write()
        assert failure.value.status_code == 412
    assert container.read_item("a", "x")["version"] == 2


def test_an_item_is_patched(container):
    etag = container.create_item({"id": "a", "pk": "x", "n": 1, "tags": ["u"]})["_etag"]
    operations = [
        {"op": "incr", "path": "/n", "value": 2},
        {"op": "add", "path": "/tags/-", "value": "v"},
        {"op": "set", "path": "/colour", "value": "red"},
        {"op": "move", "from": "/colour", "path": "/paint"},
    ]
    only_if_old = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
    patched = container.patch_item("a", "x", operations, **only_if_old)
    expected = {"id": "a", "pk": "x", "n": 3, "tags": ["u", "v"], "paint": "red"}
    assert without_system_properties(patched) == expected
    assert container.read_item("a", "x") == patched

    with pytest.raises(CosmosAccessConditionFailedError):
        container.patch_item("a", "x", operations, **only_if_old)
    with pytest.raises(CosmosAccessConditionFailedError):
        container.patch_item("a", "x", operations, filter_predicate="from c where c.n = 1")
    with pytest.raises(CosmosHttpResponseError, match="cannot create path recursively") as failure:
        container.patch_item("a", "x", [{"op": "add", "path": "/no/child", "value": 1}])
    assert failure.value.status_code == 400
    with pytest.raises(CosmosResourceNotFoundError):
        container.patch_item("b", "x", operations)
    assert container.read_item("a", "x") == patched


def test_the_current_etag_lets_a_write_through(container):
    item = container.create_item({"id": "a", "pk": "x", "version": 1})

    item["version"] = 2
    item = container.replace_item(
        item, item, etag=item["_etag"], match_condition=MatchConditions.IfNotModified
    )
    assert container.read_item("a", "x")["version"] == 2
    container.delete_item(
        item, "x", etag=item["_etag"], match_condition=MatchConditions.IfNotModified
    )


def test_an_unchanged_item_is_not_sent_again(container):
    etag = container.create_item({"id": "a", "pk": "x"})["_etag"]
    statuses = []
    only_if_changed = {
        "etag": etag,
        "match_condition": MatchConditions.IfModified,
        "raw_response_hook": lambda response: statuses.append(response.http_response.status_code),
    }

    assert not container.read_item("a", "x", **only_if_changed)
    container.replace_item("a", {"id": "a", "pk": "x", "changed": True})
    assert container.read_item("a", "x", **only_if_changed)["changed"]
    assert statuses == [304, 200]


def test_a_write_may_ask_for_no_body(container):
    assert not container.create_item({"id": "a", "pk": "x"}, no_response=True)
    assert container.read_item("a", "x")["id"] == "a"


@pytest.mark.parametrize(
    "id",
    [
        "with space",
        "plus+and&ampersand",
        "percent%20 and 100%",
        "\"quotes\" and 'more'",
        "Zoë 你好 🪰",
        "semi;colon:comma,at@equals=",
        "(brackets)[]{}<>|^`~",
        "$dollar!star*",
        "dots..and.dots",
        "-_-",
        "a" * 255,
    ],
)
def test_an_id_may_hold_special_characters(container, id):
    container.create_item({"id": id, "pk": "x"})
    assert container.read_item(id, "x")["id"] == id

    container.replace_item(id, {"id": id, "pk": "x", "replaced": True})
    container.upsert_item({"id": id, "pk": "x", "replaced": "twice"})
    assert container.read_item(id, "x")["replaced"] == "twice"
    assert [item["id"] for item in container.read_all_items()] == [id]

    container.delete_item(id, "x")
    assert list(container.read_all_items()) == []


@pytest.mark.parametrize("name", ["with space", "Zoë 你好", "plus+percent%25", "quote'quote\""])
def test_databases_and_containers_may_have_special_names(client, name):
    database = client.create_database(name)
    try:
        container = database.create_container(name, PartitionKey("/pk"))
        container.create_item({"id": name, "pk": name})
        assert container.read_item(name, name)["pk"] == name
        assert [listed["id"] for listed in database.list_containers()] == [name]
    finally:
        client.delete_database(name)


def test_the_response_headers_tell_about_the_request(container):
    created = container.create_item({"id": "a", "pk": "x"})
    read = container.read_item("a", "x")

    for item in [created, read]:
        headers = item.get_response_headers()
        assert float(headers["x-ms-request-charge"]) > 0
        assert headers["etag"] == item["_etag"]
        assert headers["x-ms-activity-id"]
        assert headers["x-ms-session-token"].startswith("0:")
        assert headers["x-ms-alt-content-path"].startswith("dbs/")
        assert headers["x-ms-content-path"] == container.read()["_rid"]


def test_every_write_moves_the_session_token(container):
    def lsn(item):
        return int(item.get_response_headers()["x-ms-session-token"].rsplit("#")[1])

    first = lsn(container.create_item({"id": "a", "pk": "x"}))
    second = lsn(container.replace_item("a", {"id": "a", "pk": "x"}))
    assert second > first
    assert lsn(container.read_item("a", "x")) >= second


def test_a_failure_tells_its_charge_and_activity(container):
    with pytest.raises(CosmosHttpResponseError) as failure:
        container.read_item("a", "x")
    headers = failure.value.response.headers
    assert float(headers["x-ms-request-charge"]) > 0
    assert headers["x-ms-activity-id"]


def test_a_unique_key_is_unique_in_its_partition(make_container):
    container = make_container(unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]})
    container.create_item({"id": "a", "pk": "x", "email": "zoe@example.com"})

    with pytest.raises(CosmosResourceExistsError) as failure:
        container.create_item({"id": "b", "pk": "x", "email": "zoe@example.com"})
    assert failure.value.status_code == 409
    container.create_item({"id": "b", "pk": "y", "email": "zoe@example.com"})

    container.delete_item("a", "x")
    container.create_item({"id": "b", "pk": "x", "email": "zoe@example.com"})
