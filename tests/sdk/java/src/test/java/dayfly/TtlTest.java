package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Time to live, second by second. No test waits: each moves the server's clock. */
class TtlTest extends OverHttpAndHttps {
    /** Whether the item {@code a} is there, for all that reads alike. */
    private static boolean lives(CosmosContainer container) {
        boolean found = find(container, "a", X) != null;
        assertEquals(found, ids(container).contains("a"));
        var many = container.readMany(List.of(new CosmosItemIdentity(X, "a")), ObjectNode.class);
        assertEquals(found ? 1 : 0, many.getResults().size());
        long all = container.readAllItems(X, ObjectNode.class).stream()
                .filter(item -> item.get("id").asText().equals("a")).count();
        assertEquals(found ? 1 : 0, all);
        List<Object> count = ask(container, "SELECT VALUE COUNT(1) FROM c WHERE c.id = 'a'");
        assertEquals(List.of(found ? 1 : 0), count);
        return found;
    }

    /** The item {@code a} lives so many seconds from now, and not one more. */
    private void assertLives(CosmosContainer container, int seconds) {
        advance(seconds - 1);
        assertTrue(lives(container));
        advance(1);
        assertFalse(lives(container));
    }

    private static void setDefaultTtl(CosmosContainer container, Integer ttl) {
        container.replace(container.read().getProperties().setDefaultTimeToLiveInSeconds(ttl));
    }

    @Test
    void anItemExpires90DaysAfterItsWriteByTheContainersDefault() {
        CosmosContainer container = makeContainer(NINETY_DAYS);
        container.createItem(item("{id: 'a', pk: 'x'}"));
        assertLives(container, NINETY_DAYS);
    }

    @Test
    void anItemExpires90DaysAfterItsWriteByItsOwnTtl() {
        CosmosContainer container = makeContainer(-1);
        container.createItem(item("id", "a", "pk", "x", "ttl", NINETY_DAYS));
        assertLives(container, NINETY_DAYS);
    }

    @Test
    void everyWriteExtendsAnItemsLife() {
        CosmosContainer container = makeContainer(DAY);
        ObjectNode body = item("{id: 'a', pk: 'x', ttl: 100}");
        container.createItem(body);
        List<Supplier<CosmosItemResponse<ObjectNode>>> writes = List.of(
                () -> container.replaceItem(body, "a", X, plain()), () -> container.upsertItem(body));
        for (var write : writes) {
            advance(99);
            assertEquals(station.server().now(), write.get().getItem().get("_ts").asLong());
        }
        assertLives(container, 100);
    }

    @Test
    void aTtlCanBeChanged() {
        CosmosContainer container = makeContainer(DAY);
        container.createItem(item("{id: 'a', pk: 'x', ttl: 100}"));
        container.replaceItem(find(container, "a", X).put("ttl", 2000), "a", X, plain());
        assertLives(container, 2000);
    }

    @Test
    void aRemovedTtlLeavesTheContainersDefault() {
        CosmosContainer container = makeContainer(1000);
        container.createItem(item("{id: 'a', pk: 'x', ttl: 100}"));
        ObjectNode item = find(container, "a", X);
        item.remove("ttl");
        container.replaceItem(item, "a", X, plain());
        assertLives(container, 1000);
    }

    @Test
    void aTtlOfMinusOneNeverExpires() {
        CosmosContainer container = makeContainer(100);
        container.createItem(item("{id: 'a', pk: 'x', ttl: -1}"));
        container.createItem(item("{id: 'b', pk: 'x'}"));
        advance(10L * YEAR);
        assertTrue(lives(container));
        assertEquals(List.of("a"), ids(container));
    }

    @Test
    void anItemThatWasDueToExpireCanBeKeptForEver() {
        CosmosContainer container = makeContainer(100);
        container.createItem(item("{id: 'a', pk: 'x'}"));
        advance(99);
        container.replaceItem(item("{id: 'a', pk: 'x', ttl: -1}"), "a", X, plain());
        advance(10L * YEAR);
        assertTrue(lives(container));
    }

    @Test
    void disablingTtlStopsExpiryAndBringsNothingBack() {
        CosmosContainer container = makeContainer(1000);
        container.createItem(item("{id: 'expired', pk: 'x', ttl: 10}"));
        container.createItem(item("{id: 'a', pk: 'x'}"));
        container.createItem(item("{id: 'own ttl', pk: 'x', ttl: 100}"));
        advance(10);

        setDefaultTtl(container, null);
        advance(10L * YEAR);
        assertTrue(lives(container));
        assertEquals(List.of("a", "own ttl"), ids(container));
    }

    @Test
    void nothingExpiresWhileTtlIsOff() {
        CosmosContainer container = makeContainer();
        container.createItem(item("{id: 'a', pk: 'x', ttl: 1}"));
        advance(10L * YEAR);
        assertTrue(lives(container));
    }

    @Test
    void aDefaultOfMinusOneExpiresOnlyItemsWithATtl() {
        CosmosContainer container = makeContainer(-1);
        container.createItem(item("{id: 'a', pk: 'x'}"));
        container.createItem(item("{id: 'b', pk: 'x', ttl: 10}"));
        advance(10);
        assertEquals(List.of("a"), ids(container));
    }

    @Test
    void aNewDefaultCountsForItemsThatAreAlreadyThere() {
        CosmosContainer container = makeContainer();
        container.createItem(item("{id: 'a', pk: 'x'}"));
        advance(500);
        setDefaultTtl(container, 501);
        assertLives(container, 1);
        setDefaultTtl(container, YEAR);
        assertFalse(lives(container));
    }

    @Test
    void noOperationFindsAnExpiredItem() {
        CosmosContainer container = makeContainer(10);
        ObjectNode body = item("{id: 'a', pk: 'x'}");
        String etag = container.createItem(body).getETag();
        advance(10);

        refused(404, () -> container.readItem("a", X, ObjectNode.class));
        refused(404, () -> container.replaceItem(body, "a", X, plain()));
        refused(404, () -> container.replaceItem(body, "a", X, onlyIf(etag)));
        refused(404, () -> container.deleteItem("a", X, plain()));

        CosmosItemResponse<ObjectNode> again = container.createItem(body);
        assertEquals(201, again.getStatusCode());
        assertNotEquals(etag, again.getETag());
        assertLives(container, 10);
    }

    @Test
    void anUpsertOverAnExpiredItemCreates() {
        CosmosContainer container = makeContainer(10);
        var old = container.createItem(item("{id: 'a', pk: 'x'}")).getItem();
        advance(10);
        CosmosItemResponse<ObjectNode> made = container.upsertItem(item("{id: 'a', pk: 'x'}"));
        assertEquals(201, made.getStatusCode());
        assertNotEquals(old.get("_rid"), made.getItem().get("_rid"));
    }

    @Test
    void anExpiredItemFreesItsUniqueKey() {
        CosmosContainer container = makeContainer(properties -> properties.setDefaultTimeToLiveInSeconds(10)
                .setUniqueKeyPolicy(new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/email"))))));
        container.createItem(item("{id: 'a', pk: 'x', email: 'zoe@example.com'}"));
        ObjectNode other = item("{id: 'b', pk: 'x', email: 'zoe@example.com'}");
        refused(409, () -> container.createItem(other));
        advance(10);
        container.createItem(other);
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "-10", "2147483648", "null", "'10'", "1.5"})
    void aWrongTtlIsRefusedWithTheServicesText(String ttl) {
        CosmosContainer container = makeContainer(-1);
        var error = refused(400, () -> container.createItem(item("{id: 'a', pk: 'x', ttl: " + ttl + "}")));
        String text = "The input ttl '" + ttl.replace('\'', '"') + "' is invalid.";
        assertTrue(error.getMessage().replace("\\", "").contains(text), error.getMessage());
        assertEquals(List.of(), ids(container));
    }

    @Test
    void theLargestTtlIsAccepted() {
        CosmosContainer container = makeContainer(Integer.MAX_VALUE);
        container.createItem(item("id", "a", "pk", "x", "ttl", Integer.MAX_VALUE));
        advance(30L * YEAR);
        assertTrue(lives(container));
    }

    /** Queries, and what they show when these of the items {@code a}, {@code b} and {@code c} live. */
    private static final Map<String, Function<List<String>, List<?>>> SHOWN = Map.of(
            "SELECT VALUE c.id FROM c ORDER BY c.n", living -> living,
            "SELECT VALUE c.id FROM c WHERE c.id = 'a'", living -> living.stream().filter("a"::equals).toList(),
            "SELECT VALUE c.id FROM c WHERE c.n >= 0 ORDER BY c.id", living -> living,
            "SELECT TOP 1 VALUE c.id FROM c ORDER BY c.n", living -> living.subList(0, 1),
            "SELECT DISTINCT VALUE c.id FROM c ORDER BY c.id", living -> living,
            "SELECT VALUE c.id FROM c JOIN t IN c.tags ORDER BY c.id", living -> living,
            "SELECT VALUE MIN(c.id) FROM c", living -> living.subList(0, 1),
            "SELECT VALUE COUNT(1) FROM c", living -> List.of(living.size()),
            "SELECT COUNT(1) AS n, c.tags FROM c GROUP BY c.tags",
            living -> List.of(Map.of("n", living.size(), "tags", List.of("t"))));

    @ParameterizedTest
    @ValueSource(ints = {400, WIDE})
    void anExpiredItemIsInNoQueryFromItsSecondOn(int throughput) {
        var properties = new CosmosContainerProperties("c", "/pk").setDefaultTimeToLiveInSeconds(100);
        database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        CosmosContainer container = database.getContainer("c");
        container.createItem(item("{id: 'a', pk: 'pk-0', n: 0, tags: ['t'], ttl: 50}"));
        container.createItem(item("{id: 'b', pk: 'pk-1', n: 1, tags: ['t']}"));
        container.createItem(item("{id: 'c', pk: 'pk-2', n: 2, tags: ['t'], ttl: -1}"));

        int[] steps = {49, 1, 49, 1};
        List<List<String>> lives = List.of(List.of("a", "b", "c"), List.of("b", "c"), List.of("b", "c"), List.of("c"));
        for (int at = 0; at < steps.length; at++) {
            advance(steps[at]);
            List<String> living = lives.get(at);
            SHOWN.forEach((query, shown) -> assertEquals(shown.apply(living), ask(container, query), query));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {400, WIDE})
    void whatExpiresBetweenTwoPagesIsNotOnTheSecond(int throughput) {
        var properties = new CosmosContainerProperties("c", "/pk").setDefaultTimeToLiveInSeconds(-1);
        database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        CosmosContainer container = database.getContainer("c");
        for (int n = 0; n < 20; n++) {
            container.createItem(item("id", "" + n, "pk", "" + n, "n", n, "ttl", 10 + n % 2));
        }
        String query = "SELECT VALUE c.n FROM c ORDER BY c.n";
        QueryPage first = askByPage(container, query, null, 8).get(0);
        assertEquals(List.of(0, 1, 2, 3, 4, 5, 6, 7), first.rows());

        advance(10);
        var rest = rows(askByPage(container, query, first.token(), 8));
        assertEquals(List.of(9, 11, 13, 15, 17, 19), rest);
        advance(1);
        assertEquals(List.of(), ask(container, query));
        assertNull(find(container, "19", key("19")));
    }
}
