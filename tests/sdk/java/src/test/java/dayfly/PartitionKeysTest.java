package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Partition keys of every kind the SDK can send, of both versions, and what is asked by them. */
class PartitionKeysTest extends OverHttpAndHttps {
    /** Takes the item through all that can be done under its partition key. */
    private static void assertItemLives(CosmosContainer container, ObjectNode item, PartitionKey key) {
        String id = item.get("id").asText();
        container.createItem(item);
        assertEquals(id, find(container, id, key).get("id").asText());

        container.replaceItem(item.deepCopy().put("replaced", true), id, key, plain());
        container.upsertItem(item.deepCopy().put("replaced", "twice"));
        assertEquals("twice", find(container, id, key).get("replaced").asText());

        var inPartition = new CosmosQueryRequestOptions().setPartitionKey(key);
        assertEquals(List.of(id), ask(container, "SELECT VALUE c.id FROM c", inPartition));
        // The SDK cannot ask so for items without a key.
        if (key != PartitionKey.NONE) {
            assertEquals(1, container.readAllItems(key, ObjectNode.class).stream().count());
            var inRange = new CosmosQueryRequestOptions().setFeedRange(FeedRange.forLogicalPartition(key));
            assertEquals(List.of(id), ask(container, "SELECT VALUE c.id FROM c", inRange));
        }

        container.deleteItem(id, key, plain());
        assertNull(find(container, id, key));
    }

    private CosmosContainer container(PartitionKeyDefinitionVersion version) {
        var properties = new CosmosContainerProperties(unique("c"), keyPaths("/pk").setVersion(version));
        return makeWideContainer(database, properties);
    }

    @ParameterizedTest
    @EnumSource(PartitionKeyDefinitionVersion.class)
    void aKeyMayBeAnyStringNumberBooleanOrNull(PartitionKeyDefinitionVersion version) {
        CosmosContainer container = container(version);
        var values = new ArrayList<Object>(List.of(
                "x", "", "Zoë 你好 🪰", "\"quoted\" \\ 'text'", "a".repeat(500),
                0, 1, -7, 1.5, 1e300, true, false));
        values.add(null);
        for (Object value : values) {
            assertItemLives(container, item("id", "a", "pk", value), key(new Object[] {value}));
        }
    }

    @ParameterizedTest
    @EnumSource(PartitionKeyDefinitionVersion.class)
    void aKeyMayBeMissing(PartitionKeyDefinitionVersion version) {
        assertItemLives(container(version), item("{id: 'a'}"), PartitionKey.NONE);
    }

    @ParameterizedTest
    @EnumSource(PartitionKeyDefinitionVersion.class)
    void theVersionComesBack(PartitionKeyDefinitionVersion version) {
        var definition = container(version).read().getProperties().getPartitionKeyDefinition();
        assertEquals(version, definition.getVersion());
    }

    @ParameterizedTest
    @EnumSource(PartitionKeyDefinitionVersion.class)
    void theSameIdInEveryKindOfPartitionIsAnotherItem(PartitionKeyDefinitionVersion version) {
        CosmosContainer container = container(version);
        Map<String, PartitionKey> keys = new LinkedHashMap<>();
        keys.put("{id: 'a', pk: '1', kind: 'string'}", key("1"));
        keys.put("{id: 'a', pk: 1, kind: 'number'}", key(1));
        keys.put("{id: 'a', pk: true, kind: 'true'}", key(true));
        keys.put("{id: 'a', pk: null, kind: 'null'}", key(new Object[] {null}));
        keys.put("{id: 'a', kind: 'missing'}", PartitionKey.NONE);
        keys.keySet().forEach(text -> container.createItem(item(text)));

        keys.forEach((text, key) -> assertEquals(item(text).get("kind"), find(container, "a", key).get("kind")));
        assertEquals(5, ids(container).size());
        var identities = keys.values().stream().filter(key -> key != PartitionKey.NONE)
                .map(key -> new CosmosItemIdentity(key, "a")).toList();
        assertEquals(4, container.readMany(identities, ObjectNode.class).getResults().size());
    }

    @Test
    void aKeyMayBeNested() {
        CosmosContainer container =
                makeContainer(properties -> properties.setPartitionKeyDefinition(keyPaths("/address/city")));
        assertItemLives(container, item("{id: 'a', address: {city: 'Bern'}}"), key("Bern"));
        assertItemLives(container, item("{id: 'a', address: {}}"), PartitionKey.NONE);
    }

    @Test
    void aKeyPathMayBeQuoted() {
        CosmosContainer container =
                makeContainer(properties -> properties.setPartitionKeyDefinition(keyPaths("/\"postal code\"")));
        assertItemLives(container, item("{id: 'a', 'postal code': 3000}"), key(3000));
    }

    @Test
    void anItemIsNotFoundUnderAnotherKey() {
        CosmosContainer container = makeContainer();
        container.createItem(item("{id: 'a', pk: 'x'}"));
        assertNull(find(container, "a", key("y")));
        refused(404, () -> container.deleteItem("a", key("y"), plain()));
        var error = refused(400, () -> container.createItem(item("{id: 'b', pk: 'x'}"), key("y"), plain()));
        assertEquals(1001, error.getSubStatusCode());
    }

    private CosmosContainer hierarchy(String... paths) {
        return makeWideContainer(database, new CosmosContainerProperties(unique("c"), keyPaths(paths)));
    }

    @Test
    void aKeyMayBeHierarchical() {
        CosmosContainer container = hierarchy("/tenant", "/user", "/session/id");
        ObjectNode item = item("{id: 'a', tenant: 't', user: 7, session: {id: 's'}}");
        assertItemLives(container, item, key("t", 7, "s"));
        ObjectNode withNull = item("{id: 'a', tenant: 't', user: null, session: {id: true}}");
        assertItemLives(container, withNull, key("t", null, true));
    }

    @Test
    void aPrefixOfAHierarchicalKeyFindsWhatIsBelowIt() {
        CosmosContainer container = hierarchy("/tenant", "/user", "/session");
        for (int n = 0; n < 24; n++) {
            container.createItem(
                    item("id", "i" + n, "tenant", "t" + n % 2, "user", "u" + n % 4, "session", n, "n", n));
        }
        for (var asked : List.of(
                Map.entry(key("t0", "u2"), List.of(2, 6, 10, 14, 18, 22)),
                Map.entry(key("t1", "u2"), List.of()),
                Map.entry(key("t0", "u2", 10), List.of(10)))) {
            for (CosmosQueryRequestOptions options : List.of(
                    new CosmosQueryRequestOptions().setPartitionKey(asked.getKey()),
                    new CosmosQueryRequestOptions().setFeedRange(FeedRange.forLogicalPartition(asked.getKey())))) {
                String query = "SELECT VALUE c.n FROM c ORDER BY c.n";
                assertEquals(asked.getValue(), ask(container, query, options));
                assertEquals(asked.getValue(), rows(askByPage(container, query, options, null, 2)));
                String count = "SELECT VALUE COUNT(1) FROM c";
                assertEquals(List.of(asked.getValue().size()), ask(container, count, options));
            }
        }

        PartitionKey tenant = new PartitionKeyBuilder().add("t0").build();
        var ofTenant = new CosmosQueryRequestOptions().setPartitionKey(tenant);
        assertEquals(12, ask(container, "SELECT * FROM c", ofTenant).size());
        assertEquals(12, container.readAllItems(tenant, ObjectNode.class).stream().count());
    }

    @Test
    void aHierarchicalKeyMustBeComplete() {
        CosmosContainer container = hierarchy("/tenant", "/user");
        container.createItem(item("{id: 'a', tenant: 't', user: 'u'}"));
        refused(400, () -> container.readItem("a", new PartitionKeyBuilder().add("t").build(), ObjectNode.class));
    }
}
