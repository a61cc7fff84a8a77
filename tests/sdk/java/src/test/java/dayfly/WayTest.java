package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;

/** That a client comes to the items the way that it was told to: the server knows. */
class WayTest extends OverHttpAndHttps {
    @Test
    void itemsAreAskedForTheWayThatWasChosen() {
        CosmosContainer container = makeWideContainer(database, new CosmosContainerProperties("c", "/pk"));
        useAll(container);
        Set<String> byItems = new TreeSet<>();
        for (JsonNode request : requests(database.getId() + "/colls/c/docs")) {
            byItems.add(request.get("channel").asText() + " " + request.get("operation").asText());
        }
        String way = station.way.isDirect() ? "direct " : "http ";
        var expected = new TreeSet<String>();
        for (String operation : new String[] {
            "create_item", "read_item", "replace_item", "upsert_item", "patch_item", "delete_item",
            "write_batch", "query_items", "read_changes"}) {
            expected.add(way + operation);
        }
        // How a query is to be asked is asked over http, in either mode.
        expected.add("http plan_query");
        assertEquals(expected, byItems);

        // A container goes over http; a database, and the list of its containers, as items do.
        client().createDatabaseIfNotExists(database.getId());
        database.readAllContainers().stream().count();
        for (JsonNode request : requests(database.getId())) {
            String path = request.get("path").asText();
            if (path.contains("/docs")) continue;
            boolean isRead = request.get("verb").asText().equals("GET");
            boolean isOfDatabase = path.equals("/dbs/" + database.getId()) || path.endsWith("/colls");
            String expectedWay = isRead && isOfDatabase ? way : "http ";
            assertEquals(expectedWay.trim(), request.get("channel").asText(), request.toString());
        }
    }

    private void useAll(CosmosContainer container) {
        container.createItem(item("{id: 'a', pk: 'x', n: 1}"));
        container.upsertItem(item("{id: 'b', pk: 'x', n: 2}"));
        container.readItem("a", X, ObjectNode.class);
        container.replaceItem(item("{id: 'a', pk: 'x', n: 3}"), "a", X, plain());
        container.patchItem("a", X, CosmosPatchOperations.create().set("/n", 4), ObjectNode.class);
        var batch = CosmosBatch.createCosmosBatch(X);
        batch.createItemOperation(item("{id: 'c', pk: 'x', n: 5}"));
        batch.readItemOperation("a");
        assertTrue(container.executeCosmosBatch(batch).isSuccessStatusCode());
        container.executeBulkOperations(List.of(
                CosmosBulkOperations.getUpsertItemOperation(item("{id: 'd', pk: 'y', n: 6}"), key("y"))));
        assertEquals(List.of(2, 4, 5, 6), ask(container, "SELECT VALUE c.n FROM c ORDER BY c.n"));
        ask(container, "SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(X));
        container.readAllItems(X, ObjectNode.class).stream().count();
        container.readMany(List.of(new CosmosItemIdentity(X, "a"), new CosmosItemIdentity(X, "b"),
                new CosmosItemIdentity(key("y"), "d")), ObjectNode.class);
        var feed = CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange());
        container.queryChangeFeed(feed, ObjectNode.class).stream().count();
        container.deleteItem("b", X, plain());
    }

    /** The requests that the server was asked, of those it remembers, to what is in a database. */
    private JsonNode requests(String path) {
        return item(station.server().admin("requests?limit=1000&path=/dbs/" + path)).get("requests");
    }
}
