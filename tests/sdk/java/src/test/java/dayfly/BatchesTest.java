package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBatchOperationResult;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkExecutionOptions;
import com.azure.cosmos.models.CosmosBulkItemRequestOptions;
import com.azure.cosmos.models.CosmosBulkOperationResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

/** Transactional batches, which are all or nothing, and bulk, which is not. */
class BatchesTest extends OverHttpAndHttps {
    private static CosmosBatch batch(PartitionKey key, Consumer<CosmosBatch> fill) {
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key);
        fill.accept(batch);
        return batch;
    }

    private static CosmosBatchResponse run(CosmosContainer container, Consumer<CosmosBatch> fill) {
        return container.executeCosmosBatch(batch(X, fill));
    }

    private static List<Integer> statuses(CosmosBatchResponse response) {
        return response.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).toList();
    }

    private static ObjectNode at(CosmosBatchResponse response, int index) {
        return response.getResults().get(index).getItem(ObjectNode.class);
    }

    /** The batch fails with the status of one operation, and nothing is written. */
    private static void assertFails(CosmosContainer container, Consumer<CosmosBatch> fill, Integer... expected) {
        var before = ask(container, "SELECT * FROM c");
        CosmosBatchResponse response = run(container, fill);
        assertEquals(List.of(expected), statuses(response));
        int status = Arrays.stream(expected).filter(each -> each != 424).findFirst().orElseThrow();
        assertEquals(status, response.getStatusCode());
        assertEquals(before, ask(container, "SELECT * FROM c"));
    }

    @Test
    void aBatchHasEveryKindOfOperation() {
        CosmosContainer container = makeContainer();
        container.createItem(item("{id: 'old', pk: 'x'}"));
        CosmosBatchResponse response = run(container, batch -> {
            batch.createItemOperation(item("{id: 'a', pk: 'x', n: 1}"));
            batch.upsertItemOperation(item("{id: 'b', pk: 'x'}"));
            batch.replaceItemOperation("old", item("{id: 'old', pk: 'x', n: 2}"));
            batch.readItemOperation("a");
            batch.deleteItemOperation("b");
        });
        assertEquals(200, response.getStatusCode());
        assertEquals(List.of(201, 201, 200, 200, 204), statuses(response));
        assertEquals(1, at(response, 3).get("n").asInt());
        assertEquals(List.of("a", "old"), ids(container));
        assertEquals(response.getResults().get(2).getETag(), find(container, "old", X).get("_etag").asText());
    }

    @Test
    void anOperationSeesThoseBeforeIt() {
        CosmosContainer container = makeContainer();
        CosmosBatchResponse response = run(container, batch -> {
            batch.createItemOperation(item("{id: 'a', pk: 'x', n: 1}"));
            batch.replaceItemOperation("a", item("{id: 'a', pk: 'x', n: 2}"));
            batch.readItemOperation("a");
            batch.deleteItemOperation("a");
            batch.upsertItemOperation(item("{id: 'a', pk: 'x', n: 3}"));
        });
        assertEquals(List.of(201, 200, 200, 204, 201), statuses(response));
        assertEquals(2, at(response, 2).get("n").asInt());
        assertEquals(3, find(container, "a", X).get("n").asInt());
    }

    @Test
    void oneThatFailsTakesAllWithIt() {
        CosmosContainer container = makeContainer();
        container.createItem(item("{id: 'old', pk: 'x', n: 1}"));
        var wrong = new CosmosBatchItemRequestOptions().setIfMatchETag("wrong");
        Map<Consumer<CosmosBatch>, Integer> failing = new HashMap<>();
        failing.put(batch -> batch.createItemOperation(item("{id: 'old', pk: 'x'}")), 409);
        failing.put(batch -> batch.readItemOperation("nobody"), 404);
        failing.put(batch -> batch.deleteItemOperation("nobody"), 404);
        failing.put(batch -> batch.replaceItemOperation("nobody", item("{id: 'nobody', pk: 'x'}")), 404);
        failing.put(batch -> batch.createItemOperation(item("{id: 'b', pk: 'y'}")), 400);
        failing.put(batch -> batch.createItemOperation(item("{id: 'b', pk: 'x', ttl: 0}")), 400);
        failing.put(batch -> batch.replaceItemOperation("old", item("{id: 'old', pk: 'x'}"), wrong), 412);
        failing.forEach((step, status) -> assertFails(container, batch -> {
            batch.createItemOperation(item("{id: 'a', pk: 'x'}"));
            step.accept(batch);
            batch.createItemOperation(item("{id: 'c', pk: 'x'}"));
        }, 424, status, 424));
    }

    @Test
    void theVersionThatIsMeantIsReplaced() {
        CosmosContainer container = makeContainer();
        String etag = container.createItem(item("{id: 'a', pk: 'x'}")).getETag();
        var unchanged = new CosmosBatchItemRequestOptions().setIfMatchETag(etag);
        var next = item("{id: 'a', pk: 'x', n: 1}");
        assertEquals(List.of(200), statuses(run(container, batch -> batch.replaceItemOperation("a", next, unchanged))));
        assertFails(container, batch -> batch.replaceItemOperation("a", next, unchanged), 412);
    }

    @Test
    void aBatchHasOneToAHundredOperationsOfTwoMegabytes() {
        CosmosContainer container = makeContainer();
        IntFunction<Consumer<CosmosBatch>> many = count -> batch -> IntStream.range(0, count)
                .forEach(n -> batch.createItemOperation(item("id", "i" + n, "pk", "x")));
        refused(400, () -> run(container, many.apply(101)));
        var large = item("id", "a", "pk", "x", "text", "x".repeat(2_300_000));
        refused(413, () -> run(container, batch -> batch.createItemOperation(large)));
        assertEquals(List.of(), ids(container));
        assertEquals(Collections.nCopies(100, 201), statuses(run(container, many.apply(100))));
    }

    @Test
    void aBatchMayBeInAPartitionOfAnyKind() {
        CosmosContainer container = makeContainer();
        for (Object value : new Object[] {7, true, null}) {
            var response = container.executeCosmosBatch(batch(key(value), batch -> {
                batch.createItemOperation(item("id", "a", "pk", value));
                batch.readItemOperation("a");
            }));
            assertEquals(List.of(201, 200), statuses(response));
            assertNotNull(find(container, "a", key(value)));
        }
        var none = container.executeCosmosBatch(
                batch(PartitionKey.NONE, batch -> batch.createItemOperation(item("{id: 'a'}"))));
        assertEquals(List.of(201), statuses(none));

        var paths = keyPaths("/tenant", "/user");
        CosmosContainer deep = makeContainer(properties -> properties.setPartitionKeyDefinition(paths));
        var response = deep.executeCosmosBatch(batch(key("t", 7), batch -> {
            batch.createItemOperation(item("{id: 'a', tenant: 't', user: 7}"));
            batch.readItemOperation("a");
        }));
        assertEquals(List.of(201, 200), statuses(response));
    }

    @Test
    void theItemsOfABatchExpireExactly() {
        CosmosContainer container = makeContainer(100);
        run(container, batch -> {
            batch.createItemOperation(item("{id: 'short', pk: 'x', ttl: 10}"));
            batch.createItemOperation(item("{id: 'default', pk: 'x'}"));
            batch.upsertItemOperation(item("{id: 'never', pk: 'x', ttl: -1}"));
        });
        advance(9);
        assertEquals(List.of("default", "never", "short"), ids(container));
        advance(1);
        assertEquals(List.of("default", "never"), ids(container));
        assertFails(container, batch -> {
            batch.createItemOperation(item("{id: 'b', pk: 'x'}"));
            batch.readItemOperation("short");
        }, 424, 404);
        advance(90);
        assertEquals(List.of("never"), ids(container));
        var again = run(container, batch -> batch.createItemOperation(item("{id: 'default', pk: 'x'}")));
        assertEquals(List.of(201), statuses(again));
    }

    @Test
    void patchesSeeThoseBeforeThem() {
        CosmosContainer container = makeContainer();
        var add = CosmosPatchOperations.create().add("/n", 1);
        var more = CosmosPatchOperations.create().increment("/n", 2);
        CosmosBatchResponse response = run(container, batch -> {
            batch.createItemOperation(item("{id: 'a', pk: 'x'}"));
            batch.patchItemOperation("a", add);
            batch.patchItemOperation("a", more);
        });
        assertEquals(List.of(201, 200, 200), statuses(response));
        assertEquals(3, at(response, 2).get("n").asInt());
        var child = CosmosPatchOperations.create().add("/no/child", 1);
        assertFails(container, batch -> batch.patchItemOperation("a", child), 400);
    }

    /** A container of four ranges, whose items live for 100 seconds. */
    private CosmosContainer makeWide() {
        var properties = new CosmosContainerProperties(unique("c"), "/pk").setDefaultTimeToLiveInSeconds(100);
        return makeWideContainer(database, properties);
    }

    private static <T> Map<CosmosItemOperation, CosmosBulkOperationResponse<T>> bulk(
            CosmosContainer container, List<CosmosItemOperation> operations) {
        Map<CosmosItemOperation, CosmosBulkOperationResponse<T>> answers = new HashMap<>();
        Iterable<CosmosBulkOperationResponse<T>> all = container.executeBulkOperations(operations);
        all.forEach(answer -> answers.put(answer.getOperation(), answer));
        return answers;
    }

    /** The statuses, in the order of the operations. */
    private static List<Integer> bulkStatuses(CosmosContainer container, List<CosmosItemOperation> operations) {
        var answers = bulk(container, operations);
        return operations.stream().map(operation -> status(answers.get(operation))).toList();
    }

    private static int status(CosmosBulkOperationResponse<?> answer) {
        return answer.getException() instanceof CosmosException error
                ? error.getStatusCode() : answer.getResponse().getStatusCode();
    }

    private static CosmosItemOperation create(int n, int ttl) {
        return CosmosBulkOperations.getCreateItemOperation(
                item("id", "i" + n, "pk", "k" + n, "n", n, "ttl", ttl), key("k" + n));
    }

    @Test
    void bulkTakesAnyNumberInEveryRange() {
        CosmosContainer container = makeWide();
        var creates = IntStream.range(0, 500).mapToObj(n -> create(n, 50)).toList();
        assertEquals(Collections.nCopies(500, 201), bulkStatuses(container, creates));
        assertEquals(500, ids(container).size());

        var mixed = IntStream.range(0, 500).mapToObj(n -> switch (n % 3) {
            case 0 -> CosmosBulkOperations.getReadItemOperation("i" + n, key("k" + n));
            case 1 -> CosmosBulkOperations.getReplaceItemOperation(
                    "i" + n, item("id", "i" + n, "pk", "k" + n, "n", -n), key("k" + n));
            default -> CosmosBulkOperations.getDeleteItemOperation("i" + n, key("k" + n));
        }).toList();
        var expected = IntStream.range(0, 500).mapToObj(n -> n % 3 == 2 ? 204 : 200).toList();
        assertEquals(expected, bulkStatuses(container, mixed));
        assertEquals(334, ids(container).size());
        assertEquals(-4, find(container, "i4", key("k4")).get("n").asInt());
    }

    @Test
    void inBulkOneThatFailsDoesSoAlone() {
        CosmosContainer container = makeWide();
        container.createItem(item("{id: 'i0', pk: 'k0'}"));
        var wrong = new CosmosBulkItemRequestOptions().setIfMatchETag("wrong");
        var operations = List.of(create(0, 50), create(1, 50), create(2, -10),
                CosmosBulkOperations.getReadItemOperation("nobody", X),
                CosmosBulkOperations.getUpsertItemOperation(item("{id: 'i0', pk: 'k0'}"), key("k0"), wrong),
                CosmosBulkOperations.getCreateItemOperation(item("{id: 'a', pk: 'y'}"), X));
        assertEquals(List.of(409, 201, 400, 404, 412, 400), bulkStatuses(container, operations));
        assertEquals(List.of("i0", "i1"), ids(container));
    }

    /** Except none: for that the SDK finds no range. */
    @Test
    void inBulkKeysAreOfAnyKind() {
        CosmosContainer container = makeWide();
        Object[] values = {"x", "", 0, 1.5, true, null};
        var operations = Arrays.stream(values).map(value ->
                CosmosBulkOperations.getCreateItemOperation(item("id", "a", "pk", value), key(value))).toList();
        assertEquals(Collections.nCopies(6, 201), bulkStatuses(container, operations));
        for (Object value : values) assertNotNull(find(container, "a", key(value)));
    }

    @Test
    void theAnswersOfBulkAreWithItemsIfAsked() {
        CosmosContainer container = makeWide();
        for (boolean asked : new boolean[] {true, false}) {
            var options = new CosmosBulkItemRequestOptions().setContentResponseOnWriteEnabled(asked);
            var upsert = CosmosBulkOperations.getUpsertItemOperation(item("{id: 'a', pk: 'x'}"), X, options);
            var answer = bulk(container, List.of(upsert)).get(upsert).getResponse();
            assertNotNull(answer.getETag());
            var shown = answer.getItem(ObjectNode.class);
            if (asked) assertEquals("a", shown.get("id").asText());
            else assertNull(shown);
        }
    }

    @Test
    void whatBulkWroteExpiresExactly() {
        CosmosContainer container = makeWide();
        bulkStatuses(container, IntStream.range(0, 40).mapToObj(n -> create(n, n < 20 ? 10 : 50)).toList());
        advance(9);
        assertEquals(40, ids(container).size());
        advance(1);
        assertEquals(20, ids(container).size());
        var again = List.of(create(0, -1), CosmosBulkOperations.getReadItemOperation("i1", key("k1")),
                CosmosBulkOperations.getDeleteItemOperation("i2", key("k2")));
        assertEquals(List.of(201, 404, 404), bulkStatuses(container, again));
        advance(40);
        assertEquals(List.of("i0"), ids(container));
    }

    @Test
    void theAsynchronousClientDoesTheSame() {
        String id = makeWide().getId();
        var container = station.async().getDatabase(database.getId()).getContainer(id);
        var operations = Flux.range(0, 250).map(n -> create(n, 50));
        var statuses = container.executeBulkOperations(operations, new CosmosBulkExecutionOptions())
                .map(BatchesTest::status).distinct().collectList().block();
        assertEquals(List.of(201), statuses);
        var batch = batch(key("k7"), steps -> steps.readItemOperation("i7"));
        assertEquals(7, at(container.executeCosmosBatch(batch).block(), 0).get("n").asInt());
    }
}
