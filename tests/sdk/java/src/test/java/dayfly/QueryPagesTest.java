package dayfly;

import static dayfly.Json.inAnyOrder;
import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.stream.IntStream;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Queries page by page: how long pages are, and how a query goes on from a token. */
class QueryPagesTest extends OverHttpAndHttps {
    private static final int COUNT = 40;

    /** Each kind of query keeps its place in a way of its own. */
    static final List<String> KINDS = List.of(
            "SELECT VALUE c.n FROM c",
            "SELECT VALUE c.n FROM c WHERE c.n % 3 = 1",
            "SELECT c.n, t FROM c JOIN t IN c.tags",
            "SELECT VALUE c.n FROM c ORDER BY c.rank",
            "SELECT VALUE c.n FROM c ORDER BY c.four DESC",
            "SELECT VALUE c.n FROM c ORDER BY c.mixed",
            "SELECT TOP 17 VALUE c.n FROM c",
            "SELECT TOP 17 VALUE c.n FROM c ORDER BY c.rank",
            "SELECT VALUE c.n FROM c OFFSET 5 LIMIT 20",
            "SELECT VALUE c.n FROM c ORDER BY c.rank OFFSET 5 LIMIT 20",
            "SELECT DISTINCT VALUE c.rank FROM c ORDER BY c.rank");

    private static CosmosContainer fill(CosmosDatabase database) {
        CosmosContainer container = makeWideContainer(database, new CosmosContainerProperties("c", "/pk"));
        List<Object> mixed = List.of("text", 5, true, "more", 5.5);
        for (int n = 0; n < COUNT; n++) {
            var item = item("id", "i" + n, "pk", "p" + n % 15, "n", n, "rank", n * 11 % COUNT, "four", n % 4,
                    "tags", List.of("a", "b", "c").subList(0, n % 4));
            // Some have null, some nothing.
            if (n % 7 < 5) item.setAll(item("mixed", mixed.get(n % 7)));
            else if (n % 7 == 5) item.putNull("mixed");
            container.createItem(item);
        }
        return container;
    }

    private CosmosDatabase shared;
    private CosmosContainer filled;

    @BeforeParameterizedClassInvocation
    void fill() {
        shared = makeDatabase(unique("filled"));
        filled = fill(shared);
    }

    @AfterParameterizedClassInvocation
    void deleteFilled() {
        shared.delete();
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT * FROM c", "SELECT * FROM c ORDER BY c.rank DESC"})
    void pagesAreAtMostAsLongAsAskedFor(String query) {
        List<QueryPage> pages = askByPage(filled, query, null, 9);
        assertTrue(pages.stream().allMatch(page -> page.rows().size() <= 9));
        assertEquals(COUNT, new HashSet<>(rows(pages)).size());
        for (QueryPage page : pages.subList(0, pages.size() - 1)) assertNotNull(page.token());
        assertNull(pages.get(pages.size() - 1).token());
    }

    @ParameterizedTest
    @FieldSource("KINDS")
    void aQueryGoesOnFromTheTokenOfAnyPage(String query) {
        List<Object> whole = ask(filled, query);
        List<QueryPage> pages = askByPage(filled, query, null, 3);
        assertSame(whole, rows(pages), query);
        assertTrue(pages.size() > 2);

        for (int at = 1; at < pages.size(); at++) {
            var seen = new ArrayList<>(rows(pages.subList(0, at)));
            seen.addAll(rows(askByPage(filled, query, pages.get(at - 1).token(), 4)));
            assertSame(whole, seen, query);
        }
    }

    /** Without an order, TOP and windows may show any rows; none comes twice. */
    private static void assertSame(List<Object> whole, List<Object> rows, String query) {
        if (query.contains("ORDER BY")) assertEquals(whole, rows, query);
        else if (query.contains("TOP") || query.contains("LIMIT")) {
            assertEquals(whole.size(), rows.size(), query);
            assertEquals(whole.size(), new HashSet<>(rows).size(), query);
        } else assertEquals(inAnyOrder(whole), inAnyOrder(rows), query);
    }

    @Test
    void aQueryOfOnePartitionGoesOnFromItsToken() {
        var options = new CosmosQueryRequestOptions().setPartitionKey(key("p3"));
        String query = "SELECT VALUE c.n FROM c ORDER BY c.n";
        QueryPage first = askByPage(filled, query, options, null, 2).get(0);
        assertEquals(List.of(3, 18), first.rows());
        assertEquals(List.of(33), rows(askByPage(filled, query, options, first.token(), 2)));
    }

    @Test
    void aQueryOfAFeedRangeGoesOnFromItsToken() {
        String query = "SELECT VALUE c.n FROM c";
        var found = new ArrayList<Object>();
        for (var range : filled.getFeedRanges()) {
            var options = new CosmosQueryRequestOptions().setFeedRange(range);
            String token = null;
            do {
                List<QueryPage> pages = askByPage(filled, query, options, token, 2);
                found.addAll(pages.get(0).rows());
                token = pages.get(0).token();
            } while (token != null);
        }
        assertEquals(inAnyOrder(IntStream.range(0, COUNT).boxed().toList()), inAnyOrder(found));
    }

    @Test
    void whatIsWrittenBehindAPageIsNotSeenAndWhatIsAheadIs() {
        CosmosContainer container = fill(database);
        String query = "SELECT VALUE c.rank FROM c ORDER BY c.rank";
        QueryPage first = askByPage(container, query, null, 10).get(0);
        container.createItem(item("{id: 'behind', pk: 'x', rank: 2.5}"));
        container.createItem(item("{id: 'ahead', pk: 'x', rank: 12.5}"));
        container.deleteItem("i2", key("p2"), plain()); // its rank is 22

        List<Object> expected = new ArrayList<>(IntStream.range(10, COUNT).filter(rank -> rank != 22).boxed().toList());
        expected.add(3, 12.5);
        assertEquals(expected, rows(askByPage(container, query, first.token(), 10)));
    }

    @Test
    void aTokenThatIsNoneIsRefused() {
        for (String token : List.of("nonsense", "[]", "{}")) {
            refused(400, () -> askByPage(filled, "SELECT * FROM c ORDER BY c.rank", token, 3));
        }
    }

    /** What a query had shown when the server was killed. */
    private record Begun(String query, List<Object> whole, QueryPage first) {}

    @Test
    void aQueryGoesOnAfterTheServerWasKilled(@TempDir Path folder) throws IOException {
        var begun = new ArrayList<Begun>();
        try (var server = new Server("--data", folder.toString());
                var client = server.client(station.way).buildClient()) {
            client.createDatabase("db");
            CosmosContainer container = fill(client.getDatabase("db"));
            for (String query : KINDS) {
                List<QueryPage> pages = askByPage(container, query, null, 4);
                begun.add(new Begun(query, rows(pages), pages.get(0)));
            }
        }
        try (var server = new Server("--data", folder.toString());
                var client = server.client(station.way).buildClient()) {
            CosmosContainer container = client.getDatabase("db").getContainer("c");
            for (Begun each : begun) {
                assertFalse(each.first.token().isEmpty());
                var seen = new ArrayList<>(each.first.rows());
                seen.addAll(rows(askByPage(container, each.query, each.first.token(), 4)));
                assertSame(each.whole, seen, each.query);
            }
        }
    }
}
