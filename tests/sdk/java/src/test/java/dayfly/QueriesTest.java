package dayfly;

import static dayfly.Json.inAnyOrder;
import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Queries: every clause of the language, over containers of one range and of four,
 * with keys of both versions and with hierarchical ones.
 *
 * The SDK asks for a plan, sends each range its part and puts the answers together.
 * What a query should show is said a second time, in Java.
 */
class QueriesTest extends OverHttpAndHttps {
    private static final List<String> COLOURS = List.of("red", "green", "blue");
    private static final List<String> SORTED_COLOURS = COLOURS.stream().sorted().toList();

    private record Order(int number, int total, String colour, List<String> tags, String city) {
        static Order of(int number) {
            return new Order(number, number * 7 % 60, COLOURS.get(number % 3),
                    List.of("a", "b", "c").subList(0, number % 4), number % 2 == 1 ? "Bern" : "Genève");
        }

        String customer() {
            return "customer-" + number % 20;
        }

        ObjectNode item() {
            ObjectNode item = Json.item("id", "order-" + number, "pk", customer(), "number", number, "total", total,
                    "colour", colour, "tags", tags, "address", Map.of("city", city, "zip", 3000 + number));
            if (number % 5 == 0) item.put("note", number % 10 == 0 ? null : "note " + number);
            return item;
        }
    }

    private static final List<Order> ORDERS = IntStream.range(0, 60).mapToObj(Order::of).toList();
    private static final List<Order> BY_TOTAL =
            ORDERS.stream().sorted(Comparator.comparing(Order::total)).toList();

    private static List<Integer> numbers(Predicate<Order> condition) {
        return ORDERS.stream().filter(condition).map(Order::number).toList();
    }

    private static List<Integer> upTo(int count) {
        return IntStream.range(0, count).boxed().toList();
    }

    private static List<Map<String, String>> customers() {
        return upTo(20).stream().map(at -> Map.of("pk", "customer-" + at)).toList();
    }

    private static <T> List<T> reversed(List<T> list) {
        var reversed = new ArrayList<>(list);
        Collections.reverse(reversed);
        return reversed;
    }

    private static final Map<String, List<?>> IN_ORDER = new LinkedHashMap<>();
    private static final Map<String, List<?>> IN_ANY_ORDER = new LinkedHashMap<>();
    /** A part of the rows, whichever: how many. */
    private static final Map<String, Integer> COUNTED = Map.of(
            "SELECT TOP 5 * FROM c", 5,
            "SELECT TOP 100 * FROM c", 60,
            "SELECT * FROM c OFFSET 3 LIMIT 7", 7,
            "SELECT * FROM c OFFSET 57 LIMIT 7", 3,
            "SELECT * FROM c OFFSET 60 LIMIT 7", 0);

    static {
        IN_ORDER.put("SELECT VALUE c.total FROM c ORDER BY c.total", upTo(60));
        IN_ORDER.put("SELECT VALUE c.total FROM c ORDER BY c.total DESC", reversed(upTo(60)));
        IN_ORDER.put("SELECT c.id, c.total FROM c ORDER BY c.total", BY_TOTAL.stream()
                .map(order -> Map.of("id", "order-" + order.number(), "total", order.total())).toList());
        IN_ORDER.put("SELECT VALUE c.number FROM c ORDER BY c.colour ASC, c.total DESC",
                SORTED_COLOURS.stream().flatMap(colour -> reversed(BY_TOTAL).stream()
                        .filter(order -> order.colour().equals(colour)).map(Order::number)).toList());
        IN_ORDER.put("SELECT VALUE c.address.zip FROM c WHERE c.address.city = 'Bern' ORDER BY c.address.zip",
                upTo(30).stream().map(half -> 3001 + 2 * half).toList());
        IN_ORDER.put("SELECT TOP 5 VALUE c.total FROM c ORDER BY c.total", upTo(5));
        IN_ORDER.put("SELECT VALUE c.total FROM c ORDER BY c.total OFFSET 10 LIMIT 4", List.of(10, 11, 12, 13));
        IN_ORDER.put("SELECT VALUE c.total FROM c ORDER BY c.total OFFSET 58 LIMIT 10", List.of(58, 59));
        IN_ORDER.put("SELECT DISTINCT VALUE c.colour FROM c ORDER BY c.colour", SORTED_COLOURS);
        IN_ORDER.put("SELECT c.total, t AS tag FROM c JOIN t IN c.tags WHERE c.total < 6 ORDER BY c.total",
                BY_TOTAL.subList(0, 6).stream().flatMap(order -> order.tags().stream()
                        .map(tag -> Map.of("total", order.total(), "tag", tag))).toList());

        IN_ANY_ORDER.put("SELECT VALUE COUNT(1) FROM c", List.of(60));
        IN_ANY_ORDER.put("SELECT VALUE SUM(c.total) FROM c", List.of(1770));
        IN_ANY_ORDER.put("SELECT VALUE AVG(c.total) FROM c", List.of(29.5));
        IN_ANY_ORDER.put("SELECT VALUE MIN(c.address.zip) FROM c", List.of(3000));
        IN_ANY_ORDER.put("SELECT VALUE MAX(c.total) FROM c", List.of(59));
        IN_ANY_ORDER.put("SELECT VALUE COUNT(c.note) FROM c", List.of(12));
        IN_ANY_ORDER.put("SELECT VALUE COUNT(1) FROM c WHERE c.total > 100", List.of(0));
        IN_ANY_ORDER.put("SELECT COUNT(1) AS count, MIN(c.total) AS least, MAX(c.total) AS most FROM c",
                List.of(Map.of("count", 60, "least", 0, "most", 59)));
        IN_ANY_ORDER.put("SELECT c.colour, COUNT(1) AS count, SUM(c.total) AS total FROM c GROUP BY c.colour",
                COLOURS.stream().map(colour -> Map.of("colour", colour, "count", 20, "total", ORDERS.stream()
                        .filter(order -> order.colour().equals(colour)).mapToInt(Order::total).sum())).toList());
        IN_ANY_ORDER.put("SELECT VALUE COUNT(1) FROM c GROUP BY c.colour", List.of(20, 20, 20));
        IN_ANY_ORDER.put("SELECT c.pk FROM c GROUP BY c.pk", customers());
        IN_ANY_ORDER.put("SELECT DISTINCT VALUE c.colour FROM c", COLOURS);
        IN_ANY_ORDER.put("SELECT DISTINCT c.pk FROM c", customers());
        // A page with one row that is an array is taken for its elements by the SDK: rows are objects.
        IN_ANY_ORDER.put("SELECT DISTINCT c.tags FROM c", IntStream.range(0, 4)
                .mapToObj(count -> Map.of("tags", List.of("a", "b", "c").subList(0, count))).toList());
        IN_ANY_ORDER.put("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.colour FROM c)", List.of(3));
        IN_ANY_ORDER.put("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags", List.of(90));
        IN_ANY_ORDER.put("SELECT c.number, t AS tag FROM c JOIN t IN c.tags WHERE t = 'c'",
                numbers(order -> order.tags().size() == 3).stream()
                        .map(number -> Map.of("number", number, "tag", "c")).toList());
        IN_ANY_ORDER.put("SELECT VALUE c.number FROM c WHERE EXISTS (SELECT VALUE t FROM t IN c.tags)",
                numbers(order -> !order.tags().isEmpty()));
        IN_ANY_ORDER.put("SELECT VALUE c.number FROM c WHERE c.address.city LIKE 'Gen%'",
                numbers(order -> order.number() % 2 == 0));
        IN_ANY_ORDER.put("SELECT VALUE c.number FROM c WHERE c.total BETWEEN 10 AND 19",
                numbers(order -> order.total() >= 10 && order.total() <= 19));
        IN_ANY_ORDER.put("SELECT VALUE c.number FROM c WHERE IS_NULL(c.note)",
                numbers(order -> order.number() % 10 == 0));
        IN_ANY_ORDER.put("SELECT VALUE c.number FROM c WHERE c.pk = 'customer-3'", List.of(3, 23, 43));
        IN_ANY_ORDER.put("SELECT VALUE c.number FROM c WHERE c.pk IN ('customer-3', 'customer-4')",
                List.of(3, 4, 23, 24, 43, 44));
    }

    private CosmosDatabase orders;

    /** The same orders in containers of all kinds. */
    @BeforeParameterizedClassInvocation
    void writeOrders() {
        orders = makeDatabase(unique("orders"));
        for (Kind kind : Kind.values()) {
            var colour = new CompositePath().setPath("/colour").setOrder(CompositePathSortOrder.ASCENDING);
            var total = new CompositePath().setPath("/total").setOrder(CompositePathSortOrder.DESCENDING);
            var properties = new CosmosContainerProperties(kind.name(), kind.key).setIndexingPolicy(
                    new IndexingPolicy().setIncludedPaths(List.of(new IncludedPath("/*")))
                            .setCompositeIndexes(List.of(List.of(colour, total))));
            orders.createContainer(properties, ThroughputProperties.createManualThroughput(kind.throughput));
            ORDERS.forEach(order -> in(kind).createItem(order.item()));
        }
    }

    @AfterParameterizedClassInvocation
    void deleteOrders() {
        orders.delete();
    }

    /** The containers that are asked. */
    enum Kind {
        ONE_RANGE(400, keyPaths("/pk")),
        FOUR_RANGES(WIDE, keyPaths("/pk")),
        FOUR_RANGES_V1(WIDE, keyPaths("/pk").setVersion(PartitionKeyDefinitionVersion.V1)),
        HIERARCHICAL(WIDE, keyPaths("/pk", "/number"));

        private final int throughput;
        private final PartitionKeyDefinition key;

        Kind(int throughput, PartitionKeyDefinition key) {
            this.throughput = throughput;
            this.key = key;
        }
    }

    private CosmosContainer in(Kind kind) {
        return orders.getContainer(kind.name());
    }

    private List<Object> rowsOf(Kind kind, String query, int size) {
        return size == 0 ? ask(in(kind), query) : rows(askByPage(in(kind), query, null, size));
    }

    /** Every kind of container, with the SDK's pages (0) and with shorter ones. */
    static Stream<Arguments> everywhere() {
        return Stream.concat(
                Stream.of(Kind.values()).flatMap(kind -> Stream.of(0, 7).map(size -> Arguments.of(kind, size))),
                Stream.of(Arguments.of(Kind.FOUR_RANGES, 1)));
    }

    @ParameterizedTest
    @MethodSource("everywhere")
    void rowsAreInOrder(Kind kind, int size) {
        IN_ORDER.forEach((query, expected) -> assertEquals(expected, rowsOf(kind, query, size), query));
    }

    @ParameterizedTest
    @MethodSource("everywhere")
    void rowsAreFound(Kind kind, int size) {
        IN_ANY_ORDER.forEach((query, expected) ->
                assertEquals(inAnyOrder(expected), inAnyOrder(rowsOf(kind, query, size)), query));
    }

    @ParameterizedTest
    @MethodSource("everywhere")
    void aPartOfTheRowsIsFound(Kind kind, int size) {
        COUNTED.forEach((query, expected) -> {
            List<Object> rows = rowsOf(kind, query, size);
            assertEquals(expected, rows.size(), query);
            assertEquals(expected, new HashSet<>(rows).size(), query);
        });
    }

    private record Asked(String condition, Map<String, ?> parameters, Predicate<Order> expected) {}

    @Test
    void parametersStandForValues() {
        for (Asked asked : List.of(
                new Asked("c.colour = @v", Map.of("v", "red"), order -> order.colour().equals("red")),
                new Asked("c.total < @v", Map.of("v", 10.5), order -> order.total() < 10.5),
                new Asked("(c.address.city = 'Bern') = @v", Map.of("v", true), order -> order.number() % 2 == 1),
                new Asked("c.tags = @v", Map.of("v", List.of("a")), order -> order.tags().size() == 1),
                new Asked("c.address = @v", Map.of("v", Map.of("city", "Bern", "zip", 3007)),
                        order -> order.number() == 7),
                new Asked("ARRAY_CONTAINS(@v, c.total)", Map.of("v", List.of(1, 2)),
                        order -> order.total() == 1 || order.total() == 2),
                new Asked("c.total IN (@v, @w)", Map.of("v", 5, "w", "five"), order -> order.total() == 5),
                new Asked("c[@v] = @w", Map.of("v", "colour", "w", "blue"), order -> order.colour().equals("blue")),
                new Asked("c.pk = @v", Map.of("v", "customer-7"), order -> order.number() % 20 == 7),
                new Asked("c.colour = @v", Map.of("v", "' OR true OR '"), order -> false))) {
            String query = "SELECT VALUE c.number FROM c WHERE " + asked.condition + " ORDER BY c.number";
            for (Kind kind : Kind.values()) {
                assertEquals(numbers(asked.expected), ask(in(kind), query, asked.parameters), asked.condition);
            }
        }
    }

    @Test
    void topOffsetAndLimitMayBeParameters() {
        CosmosContainer container = in(Kind.FOUR_RANGES);
        String window = "SELECT VALUE c.total FROM c ORDER BY c.total OFFSET @skip LIMIT @take";
        assertEquals(List.of(2, 3, 4), ask(container, window, Map.of("skip", 2, "take", 3)));
        String top = "SELECT TOP @take VALUE c.total FROM c ORDER BY c.total";
        assertEquals(List.of(0, 1), ask(container, top, Map.of("take", 2)));
    }

    @Test
    void aQueryOfOnePartitionSeesThatPartition() {
        for (Kind kind : List.of(Kind.ONE_RANGE, Kind.FOUR_RANGES, Kind.FOUR_RANGES_V1)) {
            var options = new CosmosQueryRequestOptions().setPartitionKey(key("customer-3"));
            String query = "SELECT VALUE c.number FROM c ORDER BY c.number DESC";
            assertEquals(List.of(43, 23, 3), ask(in(kind), query, options));
            assertEquals(List.of(3), ask(in(kind), "SELECT VALUE COUNT(1) FROM c", options));
            options.setPartitionKey(key("nobody"));
            assertEquals(List.of(0), ask(in(kind), "SELECT VALUE COUNT(1) FROM c", options));
        }
    }

    @Test
    void theFeedRangesTogetherAreTheContainer() {
        for (Kind kind : Kind.values()) {
            List<FeedRange> ranges = in(kind).getFeedRanges();
            assertEquals(kind == Kind.ONE_RANGE ? 1 : 4, ranges.size());
            var found = new ArrayList<Object>();
            int counted = 0;
            for (FeedRange range : ranges) {
                // A range may be kept as text.
                var options = new CosmosQueryRequestOptions().setFeedRange(FeedRange.fromString(range.toString()));
                List<Object> rows = ask(in(kind), "SELECT VALUE c.number FROM c ORDER BY c.number", options);
                String count = "SELECT VALUE COUNT(1) FROM c";
                assertEquals(List.of(rows.size()), ask(in(kind), count, options));
                found.addAll(rows);
                counted += rows.isEmpty() ? 0 : 1;
            }
            assertEquals(inAnyOrder(upTo(60)), inAnyOrder(found));
            assertTrue(ranges.size() == 1 || counted > 1);
        }
    }

    @Test
    void manyItemsAreReadAtOnce() {
        for (Kind kind : Kind.values()) {
            var identities = ORDERS.stream().filter(order -> order.number() % 2 == 0).map(order -> {
                boolean hierarchical = kind == Kind.HIERARCHICAL;
                var key = hierarchical ? key(order.customer(), order.number()) : key(order.customer());
                return new CosmosItemIdentity(key, "order-" + order.number());
            }).collect(Collectors.toCollection(ArrayList::new));
            identities.add(new CosmosItemIdentity(identities.get(0).getPartitionKey(), "nobody"));
            FeedResponse<ObjectNode> many = in(kind).readMany(identities, ObjectNode.class);
            assertEquals(inAnyOrder(numbers(order -> order.number() % 2 == 0)),
                    inAnyOrder(many.getResults().stream().map(item -> item.get("number").asInt()).toList()));
        }
    }

    @Test
    void manyPartitionsAreReadAtOnce() {
        var keys = List.of(key("customer-3"), key("customer-4"), key("nobody"));
        for (Kind kind : List.of(Kind.ONE_RANGE, Kind.FOUR_RANGES, Kind.FOUR_RANGES_V1)) {
            var numbers = in(kind).readManyByPartitionKeys(keys, ObjectNode.class).stream()
                    .map(item -> item.get("number").asInt()).toList();
            assertEquals(inAnyOrder(List.of(3, 23, 43, 4, 24, 44)), inAnyOrder(numbers));
        }
    }

    @Test
    void aQueryTellsWhatItTook() {
        var options = new CosmosQueryRequestOptions().setQueryMetricsEnabled(true).setIndexMetricsEnabled(true);
        String query = "SELECT * FROM c WHERE c.total < 10";
        double charge = 0;
        for (FeedResponse<JsonNode> page
                : in(Kind.FOUR_RANGES).queryItems(query, options, JsonNode.class).iterableByPage()) {
            charge += page.getRequestCharge();
            assertTrue(page.getCosmosDiagnostics().toString().contains("retrievedDocumentCount"));
        }
        assertTrue(charge > 0);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "SELECT * FORM c | SC1001",
        "SELECT * FROM c WHERE c.id = \"a | SC1012",
        "SELECT x.id FROM c | SC2001",
        "SELECT NOSUCH(c.id) FROM c | SC2005"})
    void aWrongQueryIsRefusedWithItsCode(String query, String code) {
        for (Kind kind : Kind.values()) {
            var error = refused(400, () -> ask(in(kind), query));
            assertTrue(error.getMessage().contains(code), error.getMessage());
        }
    }

    @Test
    void aQueryOfAContainerThatIsNotThereIsNotFound() {
        refused(404, () -> ask(database.getContainer("nowhere"), "SELECT * FROM c"));
    }

    @Test
    void anItemIsFoundByWhatItWas() {
        CosmosContainer container = makeContainer();
        container.createItem(item("{id: 'a', pk: 'x', n: 9007199254740993, text: 'Zoë \\' \\\\ 🪰'}"));
        assertEquals(List.of("a"), ask(container, "SELECT VALUE c.id FROM c WHERE c.n = 9007199254740993"));
        assertEquals(List.of("a"), ask(container, "SELECT VALUE c.id FROM c WHERE c.text = @t",
                Map.of("t", "Zoë ' \\ 🪰")));
    }
}
