"""What a server had, it has again after it was killed."""

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from dayfly import Server


def test_a_killed_server_comes_back_with_what_lived_and_without_what_had_expired(tmp_path, scheme):
    storage = ["--data", str(tmp_path)]

    with Server(*storage) as server:
        with CosmosClient(server.address(scheme), server.key) as client:
            database = client.create_database("shop")
            carts = database.create_container("carts", PartitionKey("/pk"), default_ttl=-1)
            kept = carts.create_item({"id": "kept", "pk": "x"})
            carts.create_item({"id": "expired", "pk": "x", "ttl": 10})
        server.advance(10)

    with Server(*storage) as server:
        with CosmosClient(server.address(scheme), server.key) as client:
            carts = client.get_database_client("shop").get_container_client("carts")
            assert carts.read_item("kept", "x") == kept
            with pytest.raises(CosmosResourceNotFoundError):
                carts.read_item("expired", "x")
