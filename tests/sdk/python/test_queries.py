"""Queries: every clause of the language, over a container of several ranges.

What a query should show is said a second time in Python, about the items as
they were written.
"""

import json
import uuid

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

COLOURS = ["red", "green", "blue"]

ORDERS = [
    {
        "id": f"order-{number:02}",
        "pk": f"customer-{number % 20}",
        "number": number,
        "total": number * 7 % 60,
        "colour": COLOURS[number % 3],
        "tags": [f"tag-{tag}" for tag in range(number % 4)],
        "address": {"city": "Bern" if number % 2 else "Genève", "zip": 3000 + number},
        **({"note": None if number % 10 == 0 else f"note {number}"} if number % 5 == 0 else {}),
    }
    for number in range(60)
]
BY_TOTAL = sorted(ORDERS, key=lambda order: order["total"])

INDEX = {
    "includedPaths": [{"path": "/*"}],
    "compositeIndexes": [
        [{"path": "/colour", "order": "ascending"}, {"path": "/total", "order": "descending"}]
    ],
}


@pytest.fixture(scope="module")
def orders(client):
    """A container of four ranges, with 60 orders of 20 customers."""
    database = client.create_database(f"db-{uuid.uuid4()}")
    orders = database.create_container(
        "orders", PartitionKey("/pk"), offer_throughput=20000, indexing_policy=INDEX
    )
    for order in ORDERS:
        orders.create_item(order)
    yield orders
    client.delete_database(database)


def ask(container, query, *parameters, **options):
    """All rows of a query, whose parameters are `@p0`, `@p1` and so on."""
    named = [{"name": f"@p{at}", "value": value} for at, value in enumerate(parameters)]
    options = {"enable_cross_partition_query": True, **options}
    return list(container.query_items(query, parameters=named, **options))


def in_any_order(rows):
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def numbers(condition):
    return [order["number"] for order in ORDERS if condition(order)]


@pytest.mark.parametrize("page", [None, 1, 7], ids=["whole", "row by row", "pages of 7"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT VALUE c.total FROM c ORDER BY c.total", list(range(60))),
        ("SELECT VALUE c.total FROM c ORDER BY c.total DESC", list(range(59, -1, -1))),
        ("SELECT c.id FROM c ORDER BY c.total", [{"id": order["id"]} for order in BY_TOTAL]),
        (
            "SELECT VALUE c.number FROM c ORDER BY c.colour ASC, c.total DESC",
            [
                order["number"]
                for order in sorted(ORDERS, key=lambda order: (order["colour"], -order["total"]))
            ],
        ),
        (
            "SELECT VALUE c.address.zip FROM c WHERE c.address.city = 'Bern' ORDER BY c.address.zip",
            list(range(3001, 3060, 2)),
        ),
        ("SELECT TOP 5 VALUE c.total FROM c ORDER BY c.total", [0, 1, 2, 3, 4]),
        ("SELECT VALUE c.total FROM c ORDER BY c.total OFFSET 10 LIMIT 4", [10, 11, 12, 13]),
        ("SELECT VALUE c.total FROM c ORDER BY c.total OFFSET 58 LIMIT 10", [58, 59]),
        ("SELECT DISTINCT VALUE c.colour FROM c ORDER BY c.colour", sorted(COLOURS)),
        (
            "SELECT VALUE [c.total, t] FROM c JOIN t IN c.tags WHERE c.total < 6 ORDER BY c.total",
            [[order["total"], tag] for order in BY_TOTAL[:6] for tag in order["tags"]],
        ),
        (
            "SELECT VALUE o.total FROM (SELECT * FROM root c WHERE c.total < 4) AS o "
            "ORDER BY o.total DESC",
            [3, 2, 1, 0],
        ),
        (
            "SELECT c.colour AS hue, COUNT(1) AS count FROM c GROUP BY c.colour ORDER BY hue",
            [{"hue": colour, "count": 20} for colour in sorted(COLOURS)],
        ),
    ],
)
def test_rows_are_in_order_across_ranges(orders, query, expected, page):
    assert ask(orders, query, max_item_count=page) == expected


@pytest.mark.parametrize("page", [None, 7], ids=["whole", "pages of 7"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT VALUE COUNT(1) FROM c", [60]),
        ("SELECT VALUE SUM(c.total) FROM c", [1770]),
        ("SELECT VALUE AVG(c.total) FROM c", [29.5]),
        ("SELECT VALUE MIN(c.address.zip) FROM c", [3000]),
        ("SELECT VALUE MAX(c.colour) FROM c", ["red"]),
        ("SELECT VALUE COUNT(c.note) FROM c", [12]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.total > 100", [0]),
        (
            "SELECT COUNT(1) AS count, MIN(c.total) AS least, MAX(c.total) AS most FROM c",
            [{"count": 60, "least": 0, "most": 59}],
        ),
        (
            "SELECT c.colour, COUNT(1) AS count, SUM(c.total) AS total FROM c GROUP BY c.colour",
            [
                {
                    "colour": colour,
                    "count": 20,
                    "total": sum(o["total"] for o in ORDERS if o["colour"] == colour),
                }
                for colour in COLOURS
            ],
        ),
        (
            "SELECT VALUE {city: c.address.city, colours: COUNT(c.colour)} FROM c "
            "GROUP BY c.address.city",
            [{"city": "Bern", "colours": 30}, {"city": "Genève", "colours": 30}],
        ),
        ("SELECT c.pk FROM c GROUP BY c.pk", [{"pk": f"customer-{at}"} for at in range(20)]),
        ("SELECT DISTINCT VALUE c.colour FROM c", COLOURS),
        ("SELECT DISTINCT c.pk FROM c", [{"pk": f"customer-{at}"} for at in range(20)]),
        ("SELECT DISTINCT VALUE c.tags FROM c", [ORDERS[at]["tags"] for at in range(4)]),
        ("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags", [90]),
        (
            "SELECT c.number, t AS tag FROM c JOIN t IN c.tags WHERE t = 'tag-2'",
            [{"number": n, "tag": "tag-2"} for n in range(60) if n % 4 == 3],
        ),
        (
            "SELECT VALUE c.number FROM c WHERE EXISTS (SELECT VALUE t FROM t IN c.tags)",
            numbers(lambda order: order["tags"]),
        ),
        (
            "SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags) FROM c WHERE c.number = 3",
            [["tag-0", "tag-1", "tag-2"]],
        ),
        (
            "SELECT VALUE c.number FROM c WHERE c.address.city LIKE 'Gen%'",
            numbers(lambda order: order["number"] % 2 == 0),
        ),
        (
            "SELECT VALUE c.number FROM c WHERE c.total BETWEEN 10 AND 19",
            numbers(lambda order: 10 <= order["total"] <= 19),
        ),
        (
            "SELECT VALUE c.number FROM c WHERE IS_NULL(c.note)",
            numbers(lambda order: order["number"] % 10 == 0),
        ),
        ("SELECT VALUE c.note FROM c", [order["note"] for order in ORDERS if "note" in order]),
        ("SELECT VALUE 1 + 1", [2]),
    ],
)
def test_rows_are_found_counted_and_grouped_across_ranges(orders, query, expected, page):
    assert in_any_order(ask(orders, query, max_item_count=page)) == in_any_order(expected)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("SELECT TOP 5 * FROM c", 5),
        ("SELECT TOP 100 * FROM c", 60),
        ("SELECT * FROM c OFFSET 3 LIMIT 7", 7),
        ("SELECT * FROM c OFFSET 57 LIMIT 7", 3),
        ("SELECT * FROM c OFFSET 60 LIMIT 7", 0),
    ],
)
@pytest.mark.parametrize("page", [None, 2], ids=["whole", "pages of 2"])
def test_a_part_of_the_rows_can_be_asked_for(orders, query, count, page):
    rows = ask(orders, query, max_item_count=page)
    assert len({row["id"] for row in rows}) == len(rows) == count


@pytest.mark.parametrize(
    ("query", "parameters", "expected"),
    [
        ("c.colour = @p0", ["red"], lambda order: order["colour"] == "red"),
        ("c.total < @p0", [10.5], lambda order: order["total"] < 10.5),
        ("(c.address.city = 'Bern') = @p0", [True], lambda order: order["number"] % 2),
        ("c.note = @p0", [None], lambda order: order["number"] % 10 == 0),
        ("c.tags = @p0", [["tag-0"]], lambda order: order["tags"] == ["tag-0"]),
        ("c.address = @p0", [{"city": "Bern", "zip": 3007}], lambda order: order["number"] == 7),
        ("ARRAY_CONTAINS(@p0, c.total)", [[1, 2, 3]], lambda order: order["total"] in (1, 2, 3)),
        ("c.total IN (@p0, @p1)", [5, "five"], lambda order: order["total"] == 5),
        ("c[@p0] = @p1", ["colour", "blue"], lambda order: order["colour"] == "blue"),
        ("c.colour = @p0", ["' OR true OR '"], lambda order: False),
    ],
)
def test_parameters_stand_for_values(orders, query, parameters, expected):
    rows = ask(orders, f"SELECT VALUE c.number FROM c WHERE {query}", *parameters)
    assert sorted(rows) == numbers(expected)


def test_top_offset_and_limit_may_be_parameters(orders):
    query = "SELECT VALUE c.total FROM c ORDER BY c.total OFFSET @p0 LIMIT @p1"
    assert ask(orders, query, 2, 3) == [2, 3, 4]
    assert ask(orders, "SELECT TOP @p0 VALUE c.total FROM c ORDER BY c.total", 2) == [0, 1]


def test_a_query_of_one_partition_sees_that_partition(orders):
    in_partition = {"partition_key": "customer-3", "enable_cross_partition_query": False}

    query = "SELECT VALUE c.number FROM c ORDER BY c.number DESC"
    assert ask(orders, query, **in_partition) == [43, 23, 3]
    assert ask(orders, "SELECT VALUE COUNT(1) FROM c", **in_partition) == [3]
    assert ask(
        orders, "SELECT VALUE COUNT(1) FROM c", **{**in_partition, "partition_key": "?"}
    ) == [0]


def test_a_query_of_several_ranges_must_be_allowed_to_cross_them(orders):
    with pytest.raises(CosmosHttpResponseError) as failure:
        ask(orders, "SELECT * FROM c", enable_cross_partition_query=False)
    assert failure.value.status_code == 400
    assert "Cross partition query is required but disabled" in failure.value.message


def test_feed_ranges_have_the_rows_of_the_container_between_them(orders):
    feed_ranges = list(orders.read_feed_ranges())
    found = [
        ask(orders, "SELECT VALUE c.number FROM c", feed_range=feed_range, max_item_count=3)
        for feed_range in feed_ranges
    ]
    assert len(found) == 4 and all(found)
    assert sorted(number for part in found for number in part) == list(range(60))

    counts = [
        ask(orders, "SELECT VALUE COUNT(1) FROM c", feed_range=feed_range)[0]
        for feed_range in feed_ranges
    ]
    assert counts == [len(part) for part in found]


def test_the_start_of_a_hierarchical_key_finds_everything_below_it(make_container):
    container = make_container(
        PartitionKey(["/tenant", "/user"], kind="MultiHash"), offer_throughput=20000
    )
    for number in range(24):
        container.create_item(
            {"id": str(number), "tenant": f"t-{number % 3}", "user": f"u-{number}", "n": number}
        )

    query = "SELECT VALUE c.n FROM c"
    assert sorted(ask(container, query, partition_key=["t-1"])) == list(range(1, 24, 3))
    assert ask(container, query, partition_key=["t-1", "u-4"]) == [4]
    assert sorted(ask(container, query, partition_key=["t-2"], max_item_count=2)) == list(
        range(2, 24, 3)
    )


def test_many_items_are_read_at_once(orders):
    wanted = [(order["id"], order["pk"]) for order in ORDERS if order["total"] % 2]
    found = orders.read_items([*wanted, ("nothing", "customer-1"), ("order-00", "nobody")])

    assert [(item["id"], item["pk"]) for item in found] == wanted
    assert found[0] == orders.read_item(*wanted[0])


def test_many_items_of_one_partition_are_read_at_once(orders):
    wanted = [("order-03", "customer-3"), ("order-23", "customer-3"), ("order-43", "customer-3")]
    assert [item["id"] for item in orders.read_items(wanted)] == [id for id, _ in wanted]


def test_many_items_are_read_where_the_id_is_the_partition_key(make_container):
    container = make_container("/id", offer_throughput=20000)
    ids = [f"item-{number}" for number in range(20)]
    for id in ids:
        container.create_item({"id": id})
    found = container.read_items([(id, id) for id in [*ids, "nothing"]])
    assert [item["id"] for item in found] == ids


def test_a_query_tells_its_metrics_and_charge(orders):
    headers = {}
    rows = ask(
        orders,
        "SELECT * FROM c WHERE c.colour = 'red'",
        populate_query_metrics=True,
        response_hook=lambda answered, _: headers.update(answered),
    )
    metrics = dict(pair.split("=") for pair in headers["x-ms-documentdb-query-metrics"].split(";"))

    assert len(rows) == 20
    assert int(metrics["outputDocumentCount"]) == 20
    assert int(metrics["retrievedDocumentCount"]) >= 20
    assert int(metrics["outputDocumentSize"]) > 0
    assert float(metrics["totalExecutionTimeInMs"]) > 0
    assert float(headers["x-ms-request-charge"]) > 0
    assert headers["x-ms-item-count"] == "20"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT * FORM c", "SC1001"),
        ("SELECT * FROM c WHERE c.id = 'a", "SC1012"),
        ("SELECT x.id FROM c", "SC2001"),
        ("SELECT NOSUCH(c.id) FROM c", "SC2005"),
    ],
)
def test_a_wrong_query_is_refused_with_its_code(orders, query, code):
    with pytest.raises(CosmosHttpResponseError) as failure:
        ask(orders, query)
    assert failure.value.status_code == 400
    assert code in failure.value.message


def test_databases_and_containers_can_be_queried(client, database, make_container):
    made = [make_container().id, make_container(default_ttl=10).id]

    query = {
        "query": "SELECT * FROM d WHERE d.id = @id",
        "parameters": [{"name": "@id", "value": database.id}],
    }
    assert [found["id"] for found in client.query_databases(**query)] == [database.id]
    found = database.query_containers("SELECT VALUE c.id FROM c ORDER BY c.id")
    assert list(found) == sorted(made)
    found = database.query_containers("SELECT c.id FROM c WHERE c.defaultTtl = 10")
    assert list(found) == [{"id": made[1]}]


@pytest.mark.parametrize("aggregate", ["MAX", "MIN", "AVG"])
def test_an_aggregate_over_nothing_is_none(orders, aggregate):
    query = f"SELECT VALUE {aggregate}(c.unheard) FROM c"
    assert ask(orders, query) == [None]
    assert ask(orders, query, partition_key="customer-1") == []


@pytest.mark.parametrize("aggregate", ["AVG", "SUM"])
def test_an_aggregate_over_what_it_does_not_take_is_none(orders, aggregate):
    assert ask(orders, f"SELECT VALUE {aggregate}(c.colour) FROM c") == [None]
