package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.FeedRange;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;

/** The latest version of each item, from a place on. */
class ChangeFeedTest extends OverHttpAndHttps {
    /** Id and number of each change, and the token for what comes after. */
    private record Changes(List<String> seen, String token) {}

    private static Changes read(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
        var seen = new ArrayList<String>();
        String token = null;
        for (var page : container.queryChangeFeed(options, ObjectNode.class).iterableByPage()) {
            for (ObjectNode item : page.getResults()) {
                seen.add(item.get("id").asText() + item.get("n").asText());
            }
            token = page.getContinuationToken();
        }
        return new Changes(seen, token);
    }

    private static Changes fromTheBeginning(CosmosContainer container, FeedRange range) {
        return read(container, CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range));
    }

    private static Changes after(CosmosContainer container, Changes changes) {
        return read(container, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(changes.token()));
    }

    @Test
    void eachChangeComesOnceFromATokenOn() {
        CosmosContainer container = makeContainer();
        container.createItem(item("{id: 'a', pk: 'x', n: 1}"));
        container.createItem(item("{id: 'b', pk: 'y', n: 1}"));
        container.upsertItem(item("{id: 'a', pk: 'x', n: 2}"));
        Changes all = fromTheBeginning(container, FeedRange.forFullRange());
        assertEquals(List.of("b1", "a2"), all.seen());

        Changes none = after(container, all);
        assertEquals(List.of(), none.seen());
        container.createItem(item("{id: 'c', pk: 'x', n: 1}"));
        container.deleteItem("b", key("y"), plain());
        assertEquals(List.of("c1"), after(container, all).seen());
        assertEquals(List.of("c1"), after(container, none).seen());
        Changes ofOneKey = fromTheBeginning(container, FeedRange.forLogicalPartition(X));
        assertEquals(List.of("a2", "c1"), ofOneKey.seen());
    }

    @Test
    void whatHasExpiredIsInNoPage() {
        CosmosContainer container = makeContainer(-1);
        container.createItem(item("{id: 'a', pk: 'x', n: 1, ttl: 100}"));
        container.createItem(item("{id: 'b', pk: 'x', n: 1}"));
        advance(99);
        assertEquals(List.of("a1", "b1"), fromTheBeginning(container, FeedRange.forFullRange()).seen());
        advance(1);
        assertEquals(List.of("b1"), fromTheBeginning(container, FeedRange.forFullRange()).seen());
    }

    @Test
    void pagesOfSeveralRangesShowEachItemOnce() {
        CosmosContainer container =
                makeWideContainer(database, new CosmosContainerProperties(unique("c"), "/pk"));
        List<String> made = IntStream.range(0, 40).mapToObj(number -> {
            container.createItem(item("id", "i" + number + "-", "pk", "p" + number, "n", number));
            return "i" + number + "-" + number;
        }).sorted().toList();
        var options = CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange());
        Changes all = read(container, options.setMaxItemCount(3));
        assertEquals(made, all.seen().stream().sorted().toList());
        assertEquals(List.of(), after(container, all).seen());
    }
}
