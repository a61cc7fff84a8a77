package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedProcessorItem;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.fasterxml.jackson.databind.JsonNode;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The processor of the SDK: leases, several hosts, and what each of them is told. */
class ProcessorTest extends OverHttpAndHttps {
    private static final Duration PATIENCE = Duration.ofMinutes(2);

    /** The id and number of each change, by host. */
    private final Map<String, List<String>> told = new ConcurrentHashMap<>();

    private CosmosAsyncContainer feed;
    private CosmosAsyncContainer leases;

    @BeforeEach
    void forget() {
        told.clear();
    }

    private CosmosContainer open(CosmosContainer container) {
        database.createContainer(new CosmosContainerProperties("leases", "/id").setDefaultTimeToLiveInSeconds(-1));
        CosmosAsyncDatabase own = station.async().getDatabase(database.getId());
        feed = own.getContainer(container.getId());
        leases = own.getContainer("leases");
        return container;
    }

    private static ChangeFeedProcessorOptions options() {
        return new ChangeFeedProcessorOptions()
                .setFeedPollDelay(Duration.ofMillis(100))
                .setLeaseAcquireInterval(Duration.ofSeconds(1))
                .setLeaseRenewInterval(Duration.ofSeconds(1))
                .setLeaseExpirationInterval(Duration.ofSeconds(5))
                .setLeasePrefix("p");
    }

    private ChangeFeedProcessor latest(String host) {
        List<String> seen = told.computeIfAbsent(host, name -> new CopyOnWriteArrayList<>());
        return new ChangeFeedProcessorBuilder().hostName(host).feedContainer(feed).leaseContainer(leases)
                .options(options().setStartFromBeginning(true))
                .handleChanges((List<JsonNode> changes) -> changes.forEach(
                        change -> seen.add(change.get("id").asText())))
                .buildChangeFeedProcessor();
    }

    private ChangeFeedProcessor everyVersion(String host) {
        List<String> seen = told.computeIfAbsent(host, name -> new CopyOnWriteArrayList<>());
        return new ChangeFeedProcessorBuilder().hostName(host).feedContainer(feed).leaseContainer(leases)
                .options(options())
                .handleAllVersionsAndDeletesChanges((List<ChangeFeedProcessorItem> changes) -> changes.forEach(
                        change -> seen.add(shown(change))))
                .buildChangeFeedProcessor();
    }

    private static String shown(ChangeFeedProcessorItem change) {
        var metadata = change.getChangeFeedMetaData();
        JsonNode current = change.getCurrent();
        JsonNode named = current.hasNonNull("id") ? current : change.toJsonNode().get("metadata");
        String id = named.path("id").asText();
        return metadata.getOperationType() + " " + id + (metadata.isTimeToLiveExpired() ? " by its ttl" : "");
    }

    private Set<String> all() {
        var all = ConcurrentHashMap.<String>newKeySet();
        told.values().forEach(all::addAll);
        return all;
    }

    private static void await(BooleanSupplier isThere, Object told) throws InterruptedException {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!isThere.getAsBoolean()) {
            assertTrue(System.nanoTime() < end, () -> "told so far: " + told);
            Thread.sleep(50);
        }
    }

    private static void write(CosmosContainer container, int from, int to) {
        for (int number = from; number < to; number++) {
            container.createItem(item("id", "i" + number, "pk", "p" + number % 7, "n", number));
        }
    }

    @Test
    void eachChangeComesToOneOfTheHosts() throws Exception {
        CosmosContainer container =
                open(makeWideContainer(database, new CosmosContainerProperties(unique("c"), "/pk")));
        write(container, 0, 200);
        ChangeFeedProcessor first = latest("first");
        first.start().block();
        await(() -> all().size() == 200, told);
        ChangeFeedProcessor second = latest("second");
        second.start().block();
        write(container, 200, 300);
        await(() -> all().size() == 300, told);
        // The one that is left takes all leases.
        first.stop().block();
        write(container, 300, 400);
        await(() -> all().size() == 400, told);
        second.stop().block();
    }

    @Test
    void nothingIsLostWhenARangeIsDivided() throws Exception {
        CosmosContainer container = open(makeContainer());
        write(container, 0, 100);
        ChangeFeedProcessor processor = latest("host");
        processor.start().block();
        await(() -> all().size() == 100, told);
        station.server().admin("containers/" + database.getId() + "/" + container.getId() + "/split", "");
        write(container, 100, 200);
        await(() -> all().size() == 200, told);
        processor.stop().block();
    }

    @Test
    void everyVersionComesWithItsEnd() throws Exception {
        CosmosContainer container = open(makeContainer(-1));
        ChangeFeedProcessor processor = everyVersion("host");
        processor.start().block();
        List<String> seen = told.get("host");
        // It reads from the moment on when it has its lease.
        int marks = 0;
        while (seen.isEmpty()) {
            assertTrue(marks < 1200, "it is told nothing");
            container.createItem(item("id", "mark" + marks, "pk", "x"));
            marks++;
            Thread.sleep(100);
        }
        container.createItem(item("{id: 'a', pk: 'x', n: 1}"));
        container.upsertItem(item("{id: 'a', pk: 'x', n: 2}"));
        container.deleteItem("a", key("x"), plain());
        container.createItem(item("{id: 'b', pk: 'x', n: 1, ttl: 5}"));
        await(() -> seen.contains("CREATE b"), seen);
        advance(5);
        await(() -> seen.contains("DELETE b by its ttl"), seen);
        processor.stop().block();
        List<String> ours = seen.stream().filter(change -> !change.contains("mark")).toList();
        assertEquals(
                List.of("CREATE a", "REPLACE a", "DELETE a", "CREATE b", "DELETE b by its ttl"), ours);
    }
}
