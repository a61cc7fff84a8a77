package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.List;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import org.junit.jupiter.api.Test;

/** Deleting all items of a partition key: gone at the answer, and only those. */
class DeleteByKeyTest extends OverHttpAndHttps {
    private static final PartitionKey Y = key("y");

    /** A container with the items a and b, each under the keys x and y. */
    private CosmosContainer filled() {
        CosmosContainer container = makeContainer();
        for (String key : List.of("x", "y")) {
            for (String id : List.of("a", "b")) container.createItem(item("id", id, "pk", key));
        }
        return container;
    }

    private static void delete(CosmosContainer container, PartitionKey key) {
        container.deleteAllItemsByPartitionKey(key, plain());
    }

    private static void assertCounts(CosmosContainer container, int ofX, int ofY) {
        String count = "SELECT VALUE COUNT(1) FROM c";
        var inX = new CosmosQueryRequestOptions().setPartitionKey(X);
        var inY = new CosmosQueryRequestOptions().setPartitionKey(Y);
        assertEquals(List.of(ofX), ask(container, count, inX));
        assertEquals(List.of(ofY), ask(container, count, inY));
        assertEquals(List.of(ofX + ofY), ask(container, count));
    }

    @Test
    void allItemsOfTheKeyAreGoneAndOthersStay() {
        CosmosContainer container = filled();
        delete(container, X);
        assertNull(find(container, "a", X));
        assertNotNull(find(container, "a", Y));
        assertCounts(container, 0, 2);
        assertEquals(List.of("a", "b"), ids(container));
    }

    @Test
    void whatIsWrittenLaterLivesAndIsCounted() {
        CosmosContainer container = filled();
        delete(container, X);
        container.createItem(item("{id: 'a', pk: 'x', n: 2}"));
        assertEquals(2, find(container, "a", X).get("n").asInt());
        assertCounts(container, 1, 2);
    }

    @Test
    void againAndForAKeyThatNobodyHas() {
        CosmosContainer container = filled();
        for (PartitionKey key : List.of(key("nobody"), X, X)) delete(container, key);
        assertCounts(container, 0, 2);
    }
}
