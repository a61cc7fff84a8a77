"""Queries page by page: how long pages are, and how a query goes on from a token."""

import uuid

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from dayfly import Server

COUNT = 40

STREAMED = "SELECT * FROM c"
SORTED = "SELECT * FROM c ORDER BY c.rank DESC"

# Each kind of query keeps its place in a way of its own.
KINDS = {
    "streamed": "SELECT VALUE c.n FROM c",
    "filtered": "SELECT VALUE c.n FROM c WHERE c.n % 3 = 1",
    "joined": "SELECT VALUE [c.n, t] FROM c JOIN t IN c.tags",
    "sorted": "SELECT VALUE c.n FROM c ORDER BY c.rank",
    "sorted with ties": "SELECT VALUE c.n FROM c ORDER BY c.four DESC",
    "top": "SELECT TOP 17 VALUE c.n FROM c",
    "top of sorted": "SELECT TOP 17 VALUE c.n FROM c ORDER BY c.rank",
    "a window": "SELECT VALUE c.n FROM c OFFSET 5 LIMIT 20",
    "a window of sorted": "SELECT VALUE c.n FROM c ORDER BY c.rank OFFSET 5 LIMIT 20",
    "sorted by an element": "SELECT VALUE c.n FROM c ORDER BY c.marks[0] DESC",
    "distinct and sorted": "SELECT DISTINCT VALUE c.rank FROM c ORDER BY c.rank",
}
# These must come from one look at the data.
IN_ONE_PAGE = [
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT c.pk, COUNT(1) AS count FROM c GROUP BY c.pk",
    "SELECT c.four, COUNT(1) AS count FROM c GROUP BY c.four ORDER BY c.four DESC",
]
every_kind = pytest.mark.parametrize("query", KINDS.values(), ids=KINDS)


def fill(database):
    """A container of four ranges, with items in many partitions."""
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=20000)
    for n in range(COUNT):
        item = {"id": f"i{n}", "pk": f"p{n % 15}", "n": n, "rank": n * 11 % COUNT, "four": n % 4}
        container.create_item({**item, "marks": [n % 5, n], "tags": ["a", "b", "c"][: n % 4]})
    return container


@pytest.fixture(scope="module")
def filled(client):
    database = client.create_database(f"db-{uuid.uuid4()}")
    yield fill(database)
    client.delete_database(database)


def pages(container, query, size=None, token=None, **scope):
    """The pages of a query that starts at a token; each is (rows, token after it)."""
    scope = scope or {"enable_cross_partition_query": True}
    by_page = container.query_items(query, max_item_count=size, **scope).by_page(token)
    return [(list(page), by_page.continuation_token) for page in by_page]


def rows_of(pages):
    return [row for rows, _ in pages for row in rows]


@pytest.mark.parametrize("query", [STREAMED, SORTED])
def test_pages_are_as_long_as_asked_for(filled, query):
    found = pages(filled, query, 9)
    assert [len(rows) for rows, _ in found] == [9, 9, 9, 9, 4]
    assert len({row["id"] for row in rows_of(found)}) == COUNT
    assert [token is None for _, token in found] == [False] * 4 + [True]


@pytest.mark.parametrize("query", [STREAMED, SORTED])
def test_a_page_of_just_all_rows_is_the_last_one(filled, query):
    assert [len(rows) for rows, _ in pages(filled, query, COUNT)] == [COUNT]


@pytest.mark.parametrize("size", [-1, None, 1000])
def test_the_server_may_choose_how_long_pages_are(filled, size):
    assert len(rows_of(pages(filled, STREAMED, size))) == COUNT


@every_kind
def test_a_query_goes_on_from_the_token_of_any_page(filled, query):
    whole = rows_of(pages(filled, query))
    found = pages(filled, query, 3)
    assert rows_of(found) == whole
    assert len(found) > 2

    before = []
    for rows, token in found[:-1]:
        before += rows
        assert before + rows_of(pages(filled, query, 4, token)) == whole


@pytest.mark.parametrize("query", IN_ONE_PAGE)
def test_groups_come_in_one_page(filled, query):
    (rows, token), *more = pages(filled, query, 3)
    assert rows == rows_of(pages(filled, query))
    assert (token, more) == (None, [])


def test_distinct_rows_keep_to_the_page_size(filled):
    found = pages(filled, "SELECT DISTINCT VALUE c.pk FROM c", 4)
    assert [len(rows) for rows, _ in found] == [4, 4, 4, 3]
    assert len(set(rows_of(found))) == 15


def test_a_query_of_one_partition_goes_on_from_its_token(filled):
    query = "SELECT VALUE c.n FROM c ORDER BY c.n"
    (first, token), *_ = pages(filled, query, 2, partition_key="p3")
    assert first == [3, 18]
    assert rows_of(pages(filled, query, 2, token, partition_key="p3")) == [33]


def test_a_query_of_a_feed_range_goes_on_from_its_token(filled):
    for feed_range in filled.read_feed_ranges():
        found = pages(filled, "SELECT VALUE c.n FROM c", 2, feed_range=feed_range)
        (first, token), *_ = found
        rest = pages(filled, "SELECT VALUE c.n FROM c", 3, token, feed_range=feed_range)
        assert first + rows_of(rest) == rows_of(found)


def test_what_is_written_behind_a_page_is_not_seen_and_what_is_ahead_is(database):
    container = fill(database)
    (first, token), *_ = pages(container, "SELECT VALUE c.rank FROM c ORDER BY c.rank", 10)
    container.create_item({"id": "behind", "pk": "x", "rank": 2.5})
    container.create_item({"id": "ahead", "pk": "x", "rank": 12.5})
    container.delete_item("i2", "p2")  # its rank is 22

    rest = rows_of(pages(container, "SELECT VALUE c.rank FROM c ORDER BY c.rank", 10, token))
    expected = sorted([*range(10, COUNT), 12.5])
    expected.remove(22)
    assert (first, rest) == (list(range(10)), expected)


@pytest.mark.parametrize("query", [STREAMED, SORTED])
def test_large_rows_make_short_pages(make_container, query):
    container = make_container(offer_throughput=20000)
    for n in range(12):
        container.create_item({"id": str(n), "pk": str(n), "rank": n, "text": "x" * 700_000})

    found = pages(container, query)
    assert [len(rows) for rows, _ in found] == [5, 5, 2]
    assert len({row["id"] for row in rows_of(found)}) == 12


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("size", [1, 3])
def test_long_values_are_in_order_page_by_page(make_container, direction, size):
    container = make_container(offer_throughput=20000)
    for n in range(12):
        container.create_item({"id": str(n), "pk": str(n), "text": "x" * 2000 + f"{n:02}", "n": n})

    rows = rows_of(pages(container, f"SELECT VALUE c.n FROM c ORDER BY c.text {direction}", size))
    assert rows == sorted(range(12), reverse=direction == "DESC")


@pytest.mark.parametrize("size", [None, 1])
def test_values_of_all_types_are_in_order(make_container, size):
    container = make_container(offer_throughput=20000)
    in_order = [{}, {"v": None}, {"v": False}, {"v": True}, {"v": -1.5}, {"v": 0}, {"v": 1e300}]
    in_order += [{"v": ""}, {"v": "A"}, {"v": "a"}, {"v": "é"}, {"v": [1]}, {"v": {"a": 1}}]
    for n, value in enumerate(in_order):
        container.create_item({"id": str(n), "pk": str(n), **value})

    assert rows_of(pages(container, "SELECT c.v FROM c ORDER BY c.v", size)) == in_order
    backwards = rows_of(pages(container, "SELECT c.v FROM c ORDER BY c.v DESC", size))
    assert backwards == in_order[::-1]


@pytest.mark.parametrize("token", ["nonsense", "AAAA", "[]", "{}", "-RID:~a#RT:1"])
def test_a_token_that_is_none_is_refused(filled, token):
    with pytest.raises(CosmosHttpResponseError) as failure:
        pages(filled, STREAMED, 9, token)
    assert failure.value.status_code == 400


def test_a_token_of_another_query_is_refused(filled):
    (_, token), *_ = pages(filled, STREAMED, 9)
    with pytest.raises(CosmosHttpResponseError) as failure:
        pages(filled, SORTED, 9, token)
    assert failure.value.status_code == 400


def test_a_token_of_a_namesake_that_was_deleted_is_refused(database):
    (_, token), *_ = pages(fill(database), STREAMED, 9)
    database.delete_container("c")
    with pytest.raises(CosmosHttpResponseError) as failure:
        pages(fill(database), STREAMED, 9, token)
    assert failure.value.status_code == 400


def test_a_query_goes_on_after_the_server_was_killed(tmp_path, scheme):
    storage = ["--data", str(tmp_path)]

    with Server(*storage) as server, CosmosClient(server.address(scheme), server.key) as client:
        container = fill(client.create_database("db"))
        whole = {query: rows_of(pages(container, query)) for query in KINDS.values()}
        first = {query: pages(container, query, 4)[0] for query in KINDS.values()}

    with Server(*storage) as server, CosmosClient(server.address(scheme), server.key) as client:
        container = client.get_database_client("db").get_container_client("c")
        for query, (rows, token) in first.items():
            assert rows + rows_of(pages(container, query, 4, token)) == whole[query], query
