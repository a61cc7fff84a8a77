"""A container that asks for more than its throughput: refused, and the SDK's own retry."""

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from dayfly import Server

THROUGHPUT = 400


@pytest.fixture
def enforced():
    with Server("--memory", "--throughput", "enforced") as server:
        yield server


@pytest.fixture
def carts(enforced):
    with CosmosClient(enforced.endpoint, enforced.key) as client:
        shop = client.create_database("shop")
        yield shop.create_container("carts", PartitionKey("/pk"), offer_throughput=THROUGHPUT)


def create(carts, number):
    carts.create_item({"id": str(number), "pk": "x"})


def throttled(server):
    return server.admin("containers/shop/carts/throughput?seconds=1")["total"]["throttled"]


def test_while_no_time_passes_a_request_stays_refused(enforced, carts):
    with pytest.raises(CosmosHttpResponseError) as refused:
        for number in range(THROUGHPUT):
            create(carts, number)
    assert refused.value.status_code == 429
    assert refused.value.sub_status == 3200
    assert int(refused.value.headers["x-ms-retry-after-ms"]) > 0
    # The first time, and then as often as the SDK tries again.
    assert throttled(enforced) == 10
    enforced.advance(1)
    create(carts, number)


def test_the_sdk_waits_and_tries_again(enforced, carts):
    # What it costs is taken when it is done, and is more than there is for two seconds: a clock
    # that runs again may be anywhere in its second.
    carts.create_item({"id": "large", "pk": "x", "text": "x" * 1_900_000})
    enforced.run()
    create(carts, 1)
    assert throttled(enforced) > 0
    enforced.freeze()
    enforced.advance(5)
    found = carts.query_items("SELECT VALUE c.id FROM c", partition_key="x")
    assert list(found) == ["large", "1"]
