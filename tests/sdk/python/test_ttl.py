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


# Queries, and what they show when these of the items `a`, `b` and `c` live.
QUERIES = [
    ("SELECT VALUE c.id FROM c WHERE c.id = 'a'", lambda living: ["a"] if "a" in living else []),
    ("SELECT VALUE c.id FROM c ORDER BY c.n", lambda living: living),
    ("SELECT TOP 5 VALUE c.id FROM c ORDER BY c.n DESC", lambda living: living[::-1]),
    ("SELECT VALUE c.id FROM c WHERE c.n >= 0 ORDER BY c.id", lambda living: living),
    ("SELECT DISTINCT VALUE c.id FROM c ORDER BY c.id", lambda living: living),
    ("SELECT VALUE c.id FROM c JOIN t IN c.tags ORDER BY c.id", lambda living: living),
    ("SELECT VALUE MIN(c.id) FROM c", lambda living: living[:1]),
    ("SELECT VALUE COUNT(1) FROM c", lambda living: [len(living)]),
    ("SELECT VALUE SUM(c.n) FROM c", lambda living: [sum(map("abc".index, living))]),
    (
        "SELECT COUNT(1) AS n, c.tags FROM c GROUP BY c.tags",
        lambda living: [{"n": len(living), "tags": ["t"]}],
    ),
]


def ask(container, query, **options):
    return list(container.query_items(query, enable_cross_partition_query=True, **options))


@pytest.mark.parametrize("throughput", [400, 20000], ids=["one range", "four ranges"])
def test_an_expired_item_is_in_no_query_from_its_second_on(make_container, server, throughput):
    container = make_container(default_ttl=100, offer_throughput=throughput)
    for n, ttl in enumerate([{"ttl": 50}, {}, {"ttl": -1}]):
        item = {"id": "abc"[n], "pk": f"pk-{n}", "n": n, "tags": ["t"]}
        container.create_item({**item, **ttl})

    for seconds, living in [(49, "abc"), (1, "bc"), (49, "bc"), (1, "c")]:
        server.advance(seconds)
        assert sorted(ask(container, "SELECT VALUE c.id FROM c")) == list(living)
        for query, expected in QUERIES:
            assert ask(container, query) == expected(list(living)), query


def test_an_expired_item_is_not_among_many_that_are_read(make_container, server):
    container = make_container(default_ttl=-1, offer_throughput=20000)
    wanted = []
    for n in range(20):
        container.create_item({"id": str(n), "pk": f"pk-{n % 5}", "ttl": 10 + n % 2})
        wanted.append((str(n), f"pk-{n % 5}"))

    server.advance(9)
    assert [item["id"] for item in container.read_items(wanted)] == [str(n) for n in range(20)]
    server.advance(1)
    assert [item["id"] for item in container.read_items(wanted)] == [
        str(n) for n in range(1, 20, 2)
    ]


@pytest.mark.parametrize("query", ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.n"])
def test_what_expires_between_two_pages_is_not_on_the_second(make_container, server, query):
    container = make_container(default_ttl=-1, offer_throughput=20000)
    for n in range(20):
        container.create_item({"id": str(n), "pk": str(n), "n": n, "ttl": 10 + n % 2})

    pages = container.query_items(query, enable_cross_partition_query=True, max_item_count=8)
    pages = pages.by_page()
    first = [item["id"] for item in next(pages)]
    server.advance(10)
    rest = [item["id"] for page in pages for item in page]
    assert len(first) == 8
    assert sorted(rest, key=int) == [str(n) for n in range(1, 20, 2) if str(n) not in first]


@pytest.mark.parametrize("expired", [1, 2, 3])
def test_a_sorted_query_passes_over_nothing_when_rows_of_a_page_expire(
    make_container, server, expired
):
    # Values so long that a token can only name rows, not where they are.
    container = make_container(default_ttl=-1)
    for n in range(9):
        item = {"id": str(n), "pk": str(n), "n": n, "text": "x" * 2000 + str(n)}
        container.create_item({**item, "ttl": 10 if n < expired else 100})

    query = "SELECT VALUE c.n FROM c ORDER BY c.text"
    pages = container.query_items(query, enable_cross_partition_query=True, max_item_count=3)
    pages = pages.by_page()
    assert list(next(pages)) == [0, 1, 2]
    server.advance(10)
    if expired < 3:
        assert [row for page in pages for row in page] == [3, 4, 5, 6, 7, 8]
        return
    with pytest.raises(CosmosHttpResponseError) as failure:
        next(pages)
    assert failure.value.status_code == 400
    assert "Run the query again from its start" in failure.value.message


@pytest.fixture
def many(make_container):
    """So many items that queries go by the index; they expire after 100 seconds."""
    container = make_container(default_ttl=100, offer_throughput=20000)
    for n in range(80):
        container.create_item({"id": f"{n:02}", "pk": f"pk-{n % 20}", "n": n, "even": n % 2 == 0})
    return container


def assert_found(container, numbers):
    """Every way to the items finds these, and no others."""
    numbers, even = sorted(numbers), sorted(n for n in numbers if n % 2 == 0)
    for query, expected in [
        ("SELECT VALUE c.n FROM c ORDER BY c.n", numbers),
        ("SELECT VALUE c.n FROM c WHERE c.n >= 10 ORDER BY c.n", [n for n in numbers if n >= 10]),
        ("SELECT VALUE c.n FROM c WHERE c.even = true ORDER BY c.n", even),
        ("SELECT VALUE COUNT(1) FROM c", [len(numbers)]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.even = true", [len(even)]),
        ("SELECT VALUE MIN(c.n) FROM c", numbers[:1] or [None]),
        ("SELECT VALUE MAX(c.n) FROM c", numbers[-1:] or [None]),
        ("SELECT VALUE SUM(c.n) FROM c", [sum(numbers)]),
    ]:
        assert ask(container, query) == expected, query
        assert ask(container, query, max_item_count=7) == expected, query
    found = ask(container, "SELECT VALUE c.n FROM c WHERE c.even = true OR c.n > 40")
    assert sorted(found) == [n for n in numbers if n % 2 == 0 or n > 40]


def test_a_touched_item_stays_in_queries(many, server):
    server.advance(99)
    for n in range(0, 80, 3):
        many.upsert_item(many.read_item(f"{n:02}", f"pk-{n % 20}"))
    assert_found(many, range(80))

    server.advance(1)
    assert_found(many, range(0, 80, 3))
    server.advance(98)
    assert_found(many, range(0, 80, 3))
    server.advance(1)
    assert_found(many, [])


def test_queries_follow_the_default_and_nothing_comes_back(database, many, server):
    for n in range(0, 80, 4):
        many.upsert_item({"id": f"{n:02}", "pk": f"pk-{n % 20}", "n": n, "even": True, "ttl": 30})
    server.advance(29)
    assert_found(many, range(80))
    server.advance(1)
    lasting = [n for n in range(80) if n % 4]
    assert_found(many, lasting)

    set_default_ttl(database, many, None)
    server.advance(YEAR)
    assert_found(many, lasting)
    set_default_ttl(database, many, YEAR + 31)
    assert_found(many, lasting)
    server.advance(1)
    assert_found(many, [])
    set_default_ttl(database, many, -1)
    assert_found(many, [])
