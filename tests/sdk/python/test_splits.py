"""Ranges that are divided while a client uses them: it goes on, and loses nothing."""

import pytest

COUNT = 40

# Each kind of query keeps its place in a way of its own.
KINDS = {
    "streamed": "SELECT VALUE c.n FROM c",
    "filtered": "SELECT VALUE c.n FROM c WHERE c.n % 3 = 1",
    "by a range": "SELECT VALUE c.n FROM c WHERE c.n >= 0",
    "sorted": "SELECT VALUE c.n FROM c ORDER BY c.rank",
    "distinct": "SELECT DISTINCT VALUE c.n FROM c",
}
every_kind = pytest.mark.parametrize("query", KINDS.values(), ids=KINDS)


@pytest.fixture
def filled(container):
    """A container of one range, with items in many partitions."""
    for n in range(COUNT):
        container.create_item({"id": f"i{n}", "pk": f"p{n % 15}", "n": n, "rank": n * 11 % COUNT})
    return container


def pages(container, query, size=None, token=None, **scope):
    scope = scope or {"enable_cross_partition_query": True}
    return container.query_items(query, max_item_count=size, **scope).by_page(token)


def rows(container, query, token=None, **scope):
    return [row for page in pages(container, query, 7, token, **scope) for row in page]


def changes(container, token=None, **scope):
    """The ids that changed, and the token after them."""
    start = {} if token else {"start_time": "Beginning"}
    found = container.query_items_change_feed(
        continuation=token, max_item_count=5, **start, **scope
    )
    ids = [item["id"] for item in found]
    return ids, container.client_connection.last_response_headers["etag"]


@every_kind
def test_a_query_goes_on(filled, query):
    whole = rows(filled, query)
    by_page = pages(filled, query, 4)
    begun = list(next(by_page))
    filled.replace_throughput(11000)
    begun += list(next(by_page))
    filled.replace_throughput(40000)
    assert begun + [row for page in by_page for row in page] == whole


@every_kind
def test_a_token_of_a_query_goes_on(filled, query):
    whole = rows(filled, query)
    by_page = pages(filled, query, 4)
    begun, token = list(next(by_page)), by_page.continuation_token
    filled.replace_throughput(25000)
    assert begun + rows(filled, query, token) == whole


def test_a_query_of_a_feed_range_goes_on(filled):
    (feed_range,) = filled.read_feed_ranges()
    query = KINDS["streamed"]
    by_page = pages(filled, query, 4, feed_range=feed_range)
    begun = list(next(by_page))
    filled.replace_throughput(25000)
    # The client begins anew where it is told that its range is gone.
    found = [row for page in by_page for row in page]
    assert sorted(set(begun + found)) == list(range(COUNT))
    assert len(found) in (COUNT, COUNT - len(begun))
    assert sorted(rows(filled, query, feed_range=feed_range)) == list(range(COUNT))


def test_counts_and_items_stay(filled):
    filled.replace_throughput(25000)
    assert len(list(filled.read_feed_ranges(force_refresh=True))) == 3
    assert rows(filled, "SELECT VALUE COUNT(1) FROM c") == [COUNT]
    assert len(list(filled.read_all_items())) == COUNT
    for n in range(COUNT):
        assert filled.read_item(f"i{n}", f"p{n % 15}")["n"] == n
    filled.create_item({"id": "new", "pk": "p3", "n": COUNT})
    assert filled.read_item("new", "p3")["n"] == COUNT


def test_the_change_feed_goes_on(filled):
    (feed_range,) = filled.read_feed_ranges()
    before, token = changes(filled, feed_range=feed_range)
    assert before == [f"i{n}" for n in range(COUNT)]
    filled.replace_throughput(25000)
    for n in [3, 20, 39]:
        filled.upsert_item({"id": f"i{n}", "pk": f"p{n % 15}", "n": -n})
    after, token = changes(filled, token)
    assert sorted(after) == ["i20", "i3", "i39"]
    filled.replace_throughput(60000)
    filled.upsert_item({"id": "i7", "pk": "p7", "n": -7})
    assert changes(filled, token)[0] == ["i7"]


def test_a_lower_throughput_divides_nothing(filled):
    filled.replace_throughput(25000)
    filled.replace_throughput(400)
    assert len(list(filled.read_feed_ranges(force_refresh=True))) == 3
    assert filled.get_throughput().offer_throughput == 400
