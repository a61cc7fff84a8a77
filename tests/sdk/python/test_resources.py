"""Databases and containers."""

import uuid

import pytest
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties
from azure.cosmos.exceptions import (
    CosmosHttpResponseError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

NINETY_DAYS = 90 * 24 * 60 * 60


def test_a_database_is_created_read_listed_and_deleted(client):
    name = f"db-{uuid.uuid4()}"
    database = client.create_database(name)

    assert database.read()["id"] == name
    assert name in [listed["id"] for listed in client.list_databases()]

    client.delete_database(name)
    assert name not in [listed["id"] for listed in client.list_databases()]
    with pytest.raises(CosmosResourceNotFoundError) as failure:
        database.read()
    assert failure.value.status_code == 404


def test_a_database_name_can_be_used_once(client, database):
    with pytest.raises(CosmosResourceExistsError) as failure:
        client.create_database(database.id)
    assert failure.value.status_code == 409


def test_create_if_not_exists_finds_what_is_there(client, database):
    container = database.create_container("c", PartitionKey("/pk"))

    again = client.create_database_if_not_exists(database.id)
    assert again.read()["_rid"] == database.read()["_rid"]
    same = again.create_container_if_not_exists("c", PartitionKey("/pk"))
    assert same.read()["_rid"] == container.read()["_rid"]


@pytest.mark.parametrize("default_ttl", [None, -1, NINETY_DAYS], ids=["off", "-1", "90 days"])
def test_a_container_keeps_its_default_ttl(make_container, default_ttl):
    container = make_container(default_ttl=default_ttl)

    definition = container.read()
    assert definition.get("defaultTtl") == default_ttl
    assert ("defaultTtl" in definition) == (default_ttl is not None)


def test_a_container_keeps_its_throughput(make_container):
    container = make_container("/customerId", default_ttl=NINETY_DAYS, offer_throughput=20000)

    assert container.get_throughput().offer_throughput == 20000
    assert container.read()["partitionKey"]["paths"] == ["/customerId"]


def test_a_throughput_is_replaced(make_container):
    container = make_container()

    assert container.replace_throughput(700).offer_throughput == 700
    assert container.get_throughput().offer_throughput == 700
    with pytest.raises(CosmosHttpResponseError) as refused:
        container.replace_throughput(450)
    assert refused.value.status_code == 400


def test_a_maximum_is_replaced(make_container):
    container = make_container(offer_throughput=ThroughputProperties(auto_scale_max_throughput=4000))

    container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=6000))
    assert container.get_throughput().auto_scale_max_throughput == 6000


def test_a_large_throughput_spreads_the_container_over_ranges(make_container):
    container = make_container(offer_throughput=20000)
    assert len(list(container.read_feed_ranges())) == 4

    written = {f"item-{number}" for number in range(40)}
    for id in written:
        container.create_item({"id": id, "pk": id})
    assert {item["id"] for item in container.read_all_items()} == written


def test_a_containers_definition_comes_back_with_its_defaults(make_container):
    definition = make_container().read()

    assert definition["partitionKey"] == {"paths": ["/pk"], "kind": "Hash", "version": 2}
    assert definition["indexingPolicy"]["indexingMode"] == "consistent"
    assert definition["indexingPolicy"]["includedPaths"] == [{"path": "/*"}]
    assert definition["_self"].startswith("dbs/")
    assert definition["_etag"] and definition["_rid"] and definition["_ts"] > 0


def test_containers_are_listed(database, make_container):
    made = {make_container().id, make_container().id}
    assert {listed["id"] for listed in database.list_containers()} == made


def test_a_container_name_can_be_used_once(database, container):
    with pytest.raises(CosmosResourceExistsError) as failure:
        database.create_container(container.id, PartitionKey("/pk"))
    assert failure.value.status_code == 409


def test_a_container_is_replaced(database, container):
    database.replace_container(container, PartitionKey("/pk"), default_ttl=3600)
    assert container.read()["defaultTtl"] == 3600

    database.replace_container(container, PartitionKey("/pk"))
    assert "defaultTtl" not in container.read()


def test_a_containers_partition_key_cannot_be_replaced(database, container):
    with pytest.raises(CosmosHttpResponseError) as failure:
        database.replace_container(container, PartitionKey("/other"))
    assert failure.value.status_code == 400


def test_a_deleted_container_is_gone_with_its_items(database, container):
    container.create_item({"id": "a", "pk": "x"})
    database.delete_container(container)

    assert list(database.list_containers()) == []
    with pytest.raises(CosmosResourceNotFoundError):
        container.read()
    with pytest.raises(CosmosResourceNotFoundError):
        container.read_item("a", "x")

    database.create_container(container.id, PartitionKey("/pk"))
    assert list(database.get_container_client(container.id).read_all_items()) == []


@pytest.mark.parametrize("default_ttl", [0, -10])
def test_a_default_ttl_is_minus_one_or_positive(make_container, default_ttl):
    with pytest.raises(CosmosHttpResponseError) as failure:
        make_container(default_ttl=default_ttl)
    assert failure.value.status_code == 400


def test_a_wrong_key_is_refused(server, scheme):
    wrong_key = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXk="
    with pytest.raises(CosmosHttpResponseError) as failure:
        CosmosClient(server.address(scheme), wrong_key)
    assert failure.value.status_code == 401
