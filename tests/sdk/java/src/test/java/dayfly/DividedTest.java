package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;

/** A range that is divided while clients are in the middle of something: they go on. */
class DividedTest extends OverHttpAndHttps {
    private static final int COUNT = 200;

    private CosmosContainer fill() {
        CosmosContainer container = makeContainer();
        Flux.range(0, COUNT)
                .flatMap(n -> async(container).createItem(item("id", "i" + n, "pk", "p" + n % 40, "n", n)), 16)
                .blockLast();
        return container;
    }

    private CosmosAsyncContainer async(CosmosContainer container) {
        return station.async().getDatabase(database.getId()).getContainer(container.getId());
    }

    private void divide(CosmosContainer container) {
        station.server().admin("containers/" + database.getId() + "/" + container.getId() + "/split", "");
    }

    @Test
    void readsAndWritesGoOn() {
        CosmosContainer container = fill();
        List<Integer> read = Flux.range(0, 1000)
                .doOnNext(n -> {
                    if (n == 300 || n == 600) divide(container);
                })
                .flatMap(n -> n % 10 == 0
                        ? async(container).upsertItem(item("id", "i" + n % COUNT, "pk", "p" + n % 40, "n", n % COUNT))
                                .map(written -> n % COUNT)
                        : async(container).readItem("i" + n % COUNT, key("p" + n % 40), ObjectNode.class)
                                .map(found -> found.getItem().get("n").asInt()), 16)
                .sort().collectList().block();
        assertEquals(IntStream.range(0, 1000).map(n -> n % COUNT).sorted().boxed().toList(), read);
        assertEquals(COUNT, ids(container).size());
    }

    /** By the pages of one iterator, and with tokens that came before the range was divided. */
    @Test
    void pagesInAnOrderGoOn() {
        CosmosContainer container = fill();
        List<Object> expected = new ArrayList<>(IntStream.range(0, COUNT).boxed().toList());
        String query = "SELECT VALUE c.n FROM c ORDER BY c.n";
        var rows = new ArrayList<>();
        String token = null;
        int pages = 0;
        for (FeedResponse<JsonNode> page : container.queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class)
                .iterableByPage(20)) {
            page.getResults().forEach(row -> rows.add(Json.plain(row)));
            if (pages == 2) token = page.getContinuationToken();
            if (pages == 3) divide(container);
            pages++;
        }
        assertEquals(expected, rows);
        assertEquals(expected.subList(60, COUNT), rows(askByPage(container, query, token, 20)));
        divide(container);
        assertEquals(expected.subList(60, COUNT), rows(askByPage(container, query, token, 20)));
        assertEquals(expected, ask(container, query));
    }
}
