package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.stream.Stream;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Items: create, read, upsert, replace, delete, and what may go wrong. */
class ItemsTest extends OverHttpAndHttps {
    @Test
    void anItemIsCreatedReadReplacedAndDeleted() {
        CosmosContainer container = makeContainer();
        assertEquals(201, container.createItem(item("{id: 'a', pk: 'x', colour: 'red'}")).getStatusCode());
        assertEquals("red", find(container, "a", X).get("colour").asText());

        var blue = item("{id: 'a', pk: 'x', colour: 'blue'}");
        assertEquals(200, container.replaceItem(blue, "a", X, plain()).getStatusCode());
        assertEquals("blue", find(container, "a", X).get("colour").asText());

        assertEquals(204, container.deleteItem("a", X, plain()).getStatusCode());
        assertNull(find(container, "a", X));
    }

    @Test
    void anUpsertCreatesAndThenReplaces() {
        CosmosContainer container = makeContainer();
        assertEquals(201, container.upsertItem(item("{id: 'a', pk: 'x', colour: 'red'}")).getStatusCode());
        assertEquals(200, container.upsertItem(item("{id: 'a', pk: 'x', colour: 'blue'}")).getStatusCode());
        assertEquals("blue", find(container, "a", X).get("colour").asText());
    }

    @Test
    void anItemComesBackAsItWasSent() {
        CosmosContainer container = makeContainer();
        ObjectNode sent = item("""
                {id: 'a', pk: 'x', text: 'Zoë 你好 🪰 " \\\\ \\n \\u0001',
                 numbers: [0, -1, 1.5, 1e21, 9007199254740992, -2147483648], nothing: null,
                 flags: [true, false], nested: {empty: {}, list: [[], [1, [2]]], '': 'no name'}}""");
        container.createItem(sent);

        ObjectNode read = find(container, "a", X);
        read.remove(List.of("_rid", "_self", "_etag", "_attachments", "_ts"));
        assertEquals(sent, read);
    }

    @Test
    void aLargeItemComesBack() {
        CosmosContainer container = makeContainer();
        String text = "ä".repeat(500_000);
        container.createItem(item("id", "a", "pk", "x", "text", text));
        assertEquals(text, find(container, "a", X).get("text").asText());
    }

    @Test
    void anItemHasItsSystemProperties() {
        CosmosContainer container = makeContainer();
        ObjectNode item = container.createItem(item("{id: 'a', pk: 'x'}")).getItem();

        assertEquals(station.server().now(), item.get("_ts").asLong());
        assertEquals("attachments/", item.get("_attachments").asText());
        assertTrue(item.get("_self").asText().endsWith("/docs/" + item.get("_rid").asText() + "/"));
        assertTrue(item.get("_etag").asText().matches("\".+\""));
        assertEquals(item, find(container, "a", X));
    }

    @Test
    void theAnswerToAWriteMayBeLeftOut() {
        CosmosContainer container = makeContainer();
        var brief = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false);
        assertNull(container.createItem(item("{id: 'a', pk: 'x'}"), X, brief).getItem());
        assertNull(container.upsertItem(item("{id: 'a', pk: 'x', n: 1}"), X, brief).getItem());
        assertNull(container.replaceItem(item("{id: 'a', pk: 'x', n: 2}"), "a", X, brief).getItem());
        assertEquals(2, find(container, "a", X).get("n").asInt());
    }

    @Test
    void aMissingItemIsNotFound() {
        CosmosContainer container = makeContainer();
        refused(404, () -> container.readItem("a", X, ObjectNode.class));
        refused(404, () -> container.replaceItem(item("{id: 'a', pk: 'x'}"), "a", X, plain()));
        refused(404, () -> container.deleteItem("a", X, plain()));
    }

    @Test
    void anIdCanBeUsedOnceInAPartition() {
        CosmosContainer container = makeContainer();
        container.createItem(item("{id: 'a', pk: 'x'}"));
        refused(409, () -> container.createItem(item("{id: 'a', pk: 'x'}")));
        container.createItem(item("{id: 'a', pk: 'y'}"));
    }

    @Test
    void anOldEtagStopsReplaceUpsertAndDelete() {
        CosmosContainer container = makeContainer();
        String old = container.createItem(item("{id: 'a', pk: 'x', version: 1}")).getETag();
        String current = container.replaceItem(item("{id: 'a', pk: 'x', version: 2}"), "a", X, plain()).getETag();
        assertNotEquals(old, current);

        ObjectNode third = item("{id: 'a', pk: 'x', version: 3}");
        refused(412, () -> container.replaceItem(third, "a", X, onlyIf(old)));
        refused(412, () -> container.upsertItem(third, X, onlyIf(old)));
        refused(412, () -> container.deleteItem("a", X, onlyIf(old)));
        assertEquals(2, find(container, "a", X).get("version").asInt());
    }

    @Test
    void theCurrentEtagLetsAWriteThrough() {
        CosmosContainer container = makeContainer();
        String first = container.createItem(item("{id: 'a', pk: 'x'}")).getETag();
        var second = item("{id: 'a', pk: 'x', version: 2}");
        String etag = container.replaceItem(second, "a", X, onlyIf(first)).getETag();
        assertEquals(204, container.deleteItem("a", X, onlyIf(etag)).getStatusCode());
    }

    @Test
    void anUnchangedItemIsNotSentAgain() {
        CosmosContainer container = makeContainer();
        String etag = container.createItem(item("{id: 'a', pk: 'x'}")).getETag();
        var onlyIfChanged = new CosmosItemRequestOptions().setIfNoneMatchETag(etag);

        CosmosItemResponse<ObjectNode> unchanged = container.readItem("a", X, onlyIfChanged, ObjectNode.class);
        assertEquals(304, unchanged.getStatusCode());
        assertNull(unchanged.getItem());
        container.replaceItem(item("{id: 'a', pk: 'x', changed: true}"), "a", X, plain());
        CosmosItemResponse<ObjectNode> changed = container.readItem("a", X, onlyIfChanged, ObjectNode.class);
        assertEquals(200, changed.getStatusCode());
        assertTrue(changed.getItem().get("changed").asBoolean());
    }

    @Test
    void anUpsertMayBeForNewItemsOnly() {
        CosmosContainer container = makeContainer();
        var onlyIfNew = new CosmosItemRequestOptions().setIfNoneMatchETag("*");
        assertEquals(201, container.upsertItem(item("{id: 'a', pk: 'x'}"), X, onlyIfNew).getStatusCode());
        refused(409, () -> container.createItem(item("{id: 'a', pk: 'x'}"), X, onlyIfNew));
    }

    static Stream<String> oddIds() {
        return Stream.of(
                "with space", "plus+and&ampersand", "percent%20 and 100%", "\"quotes\" and 'more'", "Zoë 你好 🪰",
                "semi;colon:comma,at@equals=", "(brackets)[]{}<>|^`~", "$dollar!star*", "dots..and.dots", "-_-",
                "question?mark", "a".repeat(255));
    }

    @ParameterizedTest
    @MethodSource("oddIds")
    void anIdMayHoldSpecialCharacters(String id) {
        CosmosContainer container = makeContainer();
        container.createItem(item("id", id, "pk", "x"));
        assertEquals(id, find(container, id, X).get("id").asText());

        container.replaceItem(item("id", id, "pk", "x", "replaced", true), id, X, plain());
        container.upsertItem(item("id", id, "pk", "x", "replaced", "twice"));
        assertEquals("twice", find(container, id, X).get("replaced").asText());
        assertEquals(List.of(id), ids(container));

        container.deleteItem(id, X, plain());
        assertEquals(List.of(), ids(container));
    }

    @ParameterizedTest
    @ValueSource(strings = {"with space", "Zoë 你好", "plus+percent%25", "quote'quote\""})
    void databasesAndContainersMayHaveSpecialNames(String name) {
        var special = makeDatabase(name);
        try {
            special.createContainer(new CosmosContainerProperties(name, "/pk"));
            CosmosContainer container = special.getContainer(name);
            container.createItem(item("id", name, "pk", name));
            assertEquals(name, find(container, name, key(name)).get("pk").asText());
        } finally {
            special.delete();
        }
    }

    @Test
    void theAnswerTellsAboutTheRequest() {
        CosmosContainer container = makeContainer();
        CosmosItemResponse<ObjectNode> created = container.createItem(item("{id: 'a', pk: 'x'}"));
        CosmosItemResponse<ObjectNode> read = container.readItem("a", X, ObjectNode.class);

        for (CosmosItemResponse<ObjectNode> response : List.of(created, read)) {
            assertTrue(response.getRequestCharge() > 0);
            assertEquals(response.getItem().get("_etag").asText(), response.getETag());
            assertFalse(response.getActivityId().isEmpty());
            assertTrue(response.getSessionToken().startsWith("0:"), response.getSessionToken());
        }
    }

    @Test
    void everyWriteMovesTheSessionToken() {
        CosmosContainer container = makeContainer();
        var created = container.createItem(item("{id: 'a', pk: 'x'}"));
        var replaced = container.replaceItem(item("{id: 'a', pk: 'x'}"), "a", X, plain());
        assertTrue(lsn(replaced) > lsn(created));
        assertTrue(lsn(container.readItem("a", X, ObjectNode.class)) >= lsn(replaced));
    }

    private static long lsn(CosmosItemResponse<?> response) {
        return Long.parseLong(response.getSessionToken().split("#")[1]);
    }

    @Test
    void aFailureTellsItsChargeAndActivity() {
        CosmosContainer container = makeContainer();
        var error = refused(404, () -> container.deleteItem("a", X, plain()));
        assertEquals(0, error.getSubStatusCode());
        assertTrue(error.getRequestCharge() > 0);
        assertFalse(error.getActivityId().isEmpty());
    }
}
