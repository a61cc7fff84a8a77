package dayfly;

import static dayfly.Json.inAnyOrder;
import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.stream.IntStream;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The asynchronous client, with many requests at once. */
class AsyncTest extends OverHttpAndHttps {
    private static final int COUNT = 40;
    private CosmosAsyncContainer container;

    @BeforeEach
    void fill() {
        var properties = new CosmosContainerProperties("c", "/pk").setDefaultTimeToLiveInSeconds(100);
        makeWideContainer(database, properties);
        container = station.async().getDatabase(database.getId()).getContainer("c");
        Flux.range(0, COUNT)
                .flatMap(n -> container.createItem(item("id", "i" + n, "pk", "p" + n % 15, "n", n)), 16)
                .blockLast();
    }

    @Test
    void itemsAreReadReplacedAndDeletedAtOnce() {
        Flux.range(0, COUNT).flatMap(n -> {
            var key = key("p" + n % 15);
            return container.readItem("i" + n, key, ObjectNode.class)
                    .flatMap(read -> container.replaceItem(
                            read.getItem().put("n", -n), "i" + n, key, onlyIf(read.getETag())))
                    .flatMap(replaced -> n % 2 == 0
                            ? container.deleteItem("i" + n, key, plain()).then()
                            : Mono.empty());
        }, 16).blockLast();
        List<Object> left = container.queryItems("SELECT VALUE c.n FROM c ORDER BY c.n DESC", JsonNode.class)
                .map(Json::plain).collectList().block();
        assertEquals(IntStream.range(0, COUNT).filter(n -> n % 2 == 1).map(n -> -n).boxed().toList(), left);
    }

    /** How a request ended, well or not. */
    private static Mono<Integer> status(Mono<CosmosItemResponse<ObjectNode>> request) {
        return request.map(CosmosItemResponse::getStatusCode)
                .onErrorResume(CosmosException.class, error -> Mono.just(error.getStatusCode()));
    }

    @Test
    void ofManyCreatesWithOneIdOneIsDone() {
        List<Integer> statuses = Flux.range(0, 16)
                .flatMap(n -> status(container.createItem(item("{id: 'one', pk: 'x'}"))), 16)
                .sort().collectList().block();
        assertEquals(201, statuses.get(0));
        assertTrue(statuses.subList(1, 16).stream().allMatch(status -> status == 409), statuses.toString());
    }

    @Test
    void ofManyReplacesWithOneEtagOneIsDone() {
        String etag = container.readItem("i0", key("p0"), ObjectNode.class).block().getETag();
        long done = Flux.range(0, 16)
                .flatMap(n -> status(container.replaceItem(
                        item("id", "i0", "pk", "p0", "n", n), "i0", key("p0"), onlyIf(etag))), 16)
                .filter(status -> status == 200).count().block();
        assertEquals(1, done);
    }

    @Test
    void pagesComeAsTheyAreAskedFor() {
        var options = new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(4);
        String query = "SELECT VALUE c.n FROM c ORDER BY c.n";
        FeedResponse<JsonNode> first =
                container.queryItems(query, options, JsonNode.class).byPage(7).blockFirst();
        assertEquals(List.of(0, 1, 2, 3, 4, 5, 6), QueryPage.of(first).rows());
        List<Object> rest = container.queryItems(query, options, JsonNode.class)
                .byPage(first.getContinuationToken(), 7)
                .flatMapIterable(page -> QueryPage.of(page).rows()).collectList().block();
        assertEquals(IntStream.range(7, COUNT).boxed().toList(), rest);
    }

    @Test
    void manyAreReadAtOnce() {
        var identities = IntStream.range(0, COUNT)
                .mapToObj(n -> new CosmosItemIdentity(key("p" + n % 15), "i" + n)).toList();
        FeedResponse<ObjectNode> many = container.readMany(identities, ObjectNode.class).block();
        assertEquals(inAnyOrder(IntStream.range(0, COUNT).boxed().toList()),
                inAnyOrder(many.getResults().stream().map(item -> item.get("n").asInt()).toList()));
        assertEquals(4, container.getFeedRanges().block().size());
    }

    @Test
    void twoHundredAreOnTheirWayAtOnce() {
        int many = 200;
        Flux.range(0, many)
                .flatMap(n -> container.upsertItem(item("id", "m" + n, "pk", "q" + n, "n", n)), many)
                .blockLast();
        List<Integer> read = Flux.range(0, many)
                .flatMap(n -> container.readItem("m" + n, key("q" + n), ObjectNode.class)
                        .map(found -> found.getItem().get("n").asInt() == n ? n : -1), many)
                .sort().collectList().block();
        assertEquals(IntStream.range(0, many).boxed().toList(), read);
        Long rows = Flux.range(0, many)
                .flatMap(n -> container.queryItems("SELECT VALUE c.id FROM c WHERE c.id = 'm" + n + "'", JsonNode.class), many)
                .count().block();
        assertEquals(many, rows);
    }

    @Test
    void whatExpiresIsGoneForAllAtOnce() {
        advance(100);
        assertEquals(List.of(0), container.queryItems("SELECT VALUE COUNT(1) FROM c", JsonNode.class)
                .map(Json::plain).collectList().block());
        Long found = Flux.range(0, COUNT)
                .flatMap(n -> container.readItem("i" + n, key("p" + n % 15), ObjectNode.class)
                        .onErrorResume(error -> Mono.empty()), 16)
                .count().block();
        assertEquals(0, found);
        assertNull(container.queryItems("SELECT * FROM c", JsonNode.class).blockFirst());
    }
}
