package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.ComputedProperty;
import com.azure.cosmos.models.ConflictResolutionPolicy;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosContainerResponse;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingMode;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.SpatialSpec;
import com.azure.cosmos.models.SpatialType;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Accounts, databases, and containers with every policy. */
class ResourcesTest extends OverHttpAndHttps {
    private Set<String> listDatabases() {
        return client().readAllDatabases().stream().map(each -> each.getId()).collect(Collectors.toSet());
    }

    private Set<String> listContainers() {
        return database.readAllContainers().stream().map(each -> each.getId()).collect(Collectors.toSet());
    }

    private static CosmosContainerProperties definition(CosmosContainer container) {
        return container.read().getProperties();
    }

    @Test
    void aDatabaseIsCreatedReadListedAndDeleted() {
        String id = unique("db");
        assertEquals(201, client().createDatabase(id).getStatusCode());
        var made = client().getDatabase(id);

        assertEquals(id, made.read().getProperties().getId());
        assertTrue(listDatabases().contains(id));
        String query = "SELECT * FROM d WHERE d.id = '" + id + "'";
        assertEquals(1, client().queryDatabases(new SqlQuerySpec(query), null).stream().count());

        assertEquals(204, made.delete().getStatusCode());
        assertFalse(listDatabases().contains(id));
        refused(404, made::read);
    }

    @Test
    void aDatabaseNameCanBeUsedOnce() {
        refused(409, () -> client().createDatabase(database.getId()));
    }

    @Test
    void createIfNotExistsFindsWhatIsThere() {
        CosmosContainer made = makeContainer();
        assertEquals(200, client().createDatabaseIfNotExists(database.getId()).getStatusCode());
        CosmosContainerResponse again = database.createContainerIfNotExists(made.getId(), "/pk");
        assertEquals(200, again.getStatusCode());
        assertEquals(definition(made).getResourceId(), again.getProperties().getResourceId());
    }

    static Stream<Integer> defaults() {
        return Stream.of(null, -1, NINETY_DAYS);
    }

    @ParameterizedTest
    @MethodSource("defaults")
    void aContainerKeepsItsDefaultTtl(Integer ttl) {
        CosmosContainer container = makeContainer(properties -> properties.setDefaultTimeToLiveInSeconds(ttl));
        assertEquals(ttl, definition(container).getDefaultTimeToLiveInSeconds());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -10})
    void aDefaultTtlIsMinusOneOrPositive(int ttl) {
        refused(400, () -> makeContainer(ttl));
    }

    @Test
    void throughputIsKept() {
        var container = makeWideContainer(database, new CosmosContainerProperties("wide", "/pk"));
        assertEquals(WIDE, container.readThroughput().getProperties().getManualThroughput());

        database.createContainer(
                new CosmosContainerProperties("auto", "/pk"), ThroughputProperties.createAutoscaledThroughput(4000));
        var auto = database.getContainer("auto").readThroughput().getProperties();
        assertEquals(4000, auto.getAutoscaleMaxThroughput());
    }

    @Test
    void throughputIsChanged() {
        CosmosContainer container = makeContainer();
        container.replaceThroughput(ThroughputProperties.createManualThroughput(700));
        assertEquals(700, container.readThroughput().getProperties().getManualThroughput());
        refused(400, () -> container.replaceThroughput(ThroughputProperties.createManualThroughput(450)));
        assertEquals(700, container.readThroughput().getProperties().getManualThroughput());
    }

    @Test
    void aDatabaseMayShareItsThroughput() {
        client().createDatabase("shared", ThroughputProperties.createManualThroughput(1000));
        var shared = client().getDatabase("shared");
        try {
            assertEquals(1000, shared.readThroughput().getProperties().getManualThroughput());
            shared.createContainer("c", "/pk");
            refused(400, () -> shared.getContainer("c").readThroughput());
        } finally {
            shared.delete();
        }
    }

    @Test
    void aLargeThroughputSpreadsTheContainerOverRanges() {
        assertEquals(1, makeContainer().getFeedRanges().size());
        var container = makeWideContainer(database, new CosmosContainerProperties("wide", "/pk"));
        assertEquals(4, container.getFeedRanges().size());
    }

    @Test
    void aDefinitionComesBackWithItsDefaults() {
        CosmosContainerProperties properties = definition(makeContainer());
        assertEquals(List.of("/pk"), properties.getPartitionKeyDefinition().getPaths());
        // The SDK does not ask for the second, if it is not told to.
        assertNull(properties.getPartitionKeyDefinition().getVersion());
        assertEquals(IndexingMode.CONSISTENT, properties.getIndexingPolicy().getIndexingMode());
        assertEquals("/*", properties.getIndexingPolicy().getIncludedPaths().get(0).getPath());
        assertNotNull(properties.getETag());
        assertNotNull(properties.getResourceId());
        assertEquals(station.server().now(), properties.getTimestamp().getEpochSecond());
    }

    @Test
    void everyPolicyComesBack() {
        CosmosContainer container = makeContainer(properties -> properties
                .setIndexingPolicy(everyIndex())
                .setUniqueKeyPolicy(new UniqueKeyPolicy().setUniqueKeys(List.of(
                        new UniqueKey(List.of("/email")), new UniqueKey(List.of("/first", "/last")))))
                .setConflictResolutionPolicy(ConflictResolutionPolicy.createLastWriterWinsPolicy("/rank"))
                .setComputedProperties(List.of(
                        new ComputedProperty("lower", "SELECT VALUE LOWER(c.name) FROM c")))
                .setAnalyticalStoreTimeToLiveInSeconds(-1)
                .setDefaultTimeToLiveInSeconds(NINETY_DAYS));

        CosmosContainerProperties read = definition(container);
        assertEveryIndex(read.getIndexingPolicy());
        assertEquals(List.of(List.of("/email"), List.of("/first", "/last")),
                read.getUniqueKeyPolicy().getUniqueKeys().stream().map(UniqueKey::getPaths).toList());
        assertEquals("/rank", read.getConflictResolutionPolicy().getConflictResolutionPath());
        ComputedProperty computed = read.getComputedProperties().iterator().next();
        assertEquals("lower", computed.getName());
        assertEquals("SELECT VALUE LOWER(c.name) FROM c", computed.getQuery());
        assertEquals(-1, read.getAnalyticalStoreTimeToLiveInSeconds());
        assertEquals(NINETY_DAYS, read.getDefaultTimeToLiveInSeconds());

        // What was read can be sent back.
        assertEquals(200, container.replace(read).getStatusCode());
        assertEveryIndex(definition(container).getIndexingPolicy());
    }

    private static IndexingPolicy everyIndex() {
        var name = new CompositePath().setPath("/name").setOrder(CompositePathSortOrder.ASCENDING);
        var age = new CompositePath().setPath("/age").setOrder(CompositePathSortOrder.DESCENDING);
        var where = new SpatialSpec().setPath("/where/*").setSpatialTypes(List.of(SpatialType.POINT));
        return new IndexingPolicy()
                .setIncludedPaths(List.of(new IncludedPath("/*")))
                .setExcludedPaths(List.of(new ExcludedPath("/note/?")))
                .setCompositeIndexes(List.of(List.of(name, age)))
                .setSpatialIndexes(List.of(where));
    }

    private static void assertEveryIndex(IndexingPolicy policy) {
        assertEquals("/*", policy.getIncludedPaths().get(0).getPath());
        assertTrue(policy.getExcludedPaths().stream().anyMatch(each -> each.getPath().equals("/note/?")));
        CompositePath age = policy.getCompositeIndexes().get(0).get(1);
        assertEquals("/age", age.getPath());
        assertEquals(CompositePathSortOrder.DESCENDING, age.getOrder());
        assertTrue(policy.getSpatialIndexes().get(0).getSpatialTypes().contains(SpatialType.POINT));
    }

    @Test
    void aContainerNeedNotBeIndexed() {
        CosmosContainer container = makeContainer(properties -> properties.setIndexingPolicy(
                new IndexingPolicy().setAutomatic(false).setIndexingMode(IndexingMode.NONE)));
        assertEquals(IndexingMode.NONE, definition(container).getIndexingPolicy().getIndexingMode());
    }

    @Test
    void aUniqueKeyIsEnforced() {
        CosmosContainer container = makeContainer(properties -> properties.setUniqueKeyPolicy(
                new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/email"))))));
        container.createItem(item("{id: 'a', pk: 'x', email: 'zoe@example.com'}"));
        refused(409, () -> container.createItem(item("{id: 'b', pk: 'x', email: 'zoe@example.com'}")));
        container.createItem(item("{id: 'b', pk: 'y', email: 'zoe@example.com'}"));
    }

    @Test
    void aComputedPropertyIsAsked() {
        CosmosContainer container = makeContainer(properties -> properties.setComputedProperties(
                List.of(new ComputedProperty("lower", "SELECT VALUE LOWER(c.name) FROM c"))));
        container.createItem(item("{id: 'a', pk: 'x', name: 'ZOE'}"));
        assertEquals(List.of("zoe"), ask(container, "SELECT VALUE c.lower FROM c WHERE c.lower = 'zoe'"));
    }

    @Test
    void containersAreListedAndQueried() {
        var made = Set.of(makeContainer().getId(), makeContainer().getId());
        assertEquals(made, listContainers());
        String query = "SELECT * FROM c WHERE c.id = '" + made.iterator().next() + "'";
        assertEquals(1, database.queryContainers(query).stream().count());
    }

    @Test
    void aContainerNameCanBeUsedOnce() {
        String id = makeContainer().getId();
        refused(409, () -> database.createContainer(id, "/pk"));
    }

    @Test
    void aContainerIsReplaced() {
        CosmosContainer container = makeContainer();
        container.replace(definition(container).setDefaultTimeToLiveInSeconds(3600));
        assertEquals(3600, definition(container).getDefaultTimeToLiveInSeconds());
        container.replace(definition(container).setDefaultTimeToLiveInSeconds(null));
        assertNull(definition(container).getDefaultTimeToLiveInSeconds());
        container.replace(definition(container).setIndexingPolicy(everyIndex()));
        assertEveryIndex(definition(container).getIndexingPolicy());
    }

    @Test
    void aContainersPartitionKeyCannotBeReplaced() {
        CosmosContainer container = makeContainer();
        var other = definition(container).setPartitionKeyDefinition(keyPaths("/other"));
        refused(400, () -> container.replace(other));
    }

    @Test
    void aDeletedContainerIsGoneWithItsItems() {
        CosmosContainer container = makeContainer();
        container.createItem(item("{id: 'a', pk: 'x'}"));
        assertEquals(204, container.delete().getStatusCode());
        assertEquals(Set.of(), listContainers());
        refused(404, container::read);
        assertNull(find(container, "a", X));
    }

    @Test
    void aContainerMadeAnewIsAnother() {
        CosmosContainer container = makeWideContainer(database, new CosmosContainerProperties("c", "/pk"));
        container.createItem(item("{id: 'a', pk: 'x'}"));
        assertEquals(List.of("a"), ids(container));
        container.delete();

        database.createContainer("c", "/other");
        container.createItem(item("{id: 'b', other: 'y'}"), key("y"), null);
        assertEquals(List.of("b"), ids(container));
        assertEquals("b", find(container, "b", key("y")).get("id").asText());
    }

    @Test
    void aWrongKeyIsRefused() {
        String wrong = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXk=";
        var builder = station.server().client(station.way).key(wrong);
        var error = assertThrows(RuntimeException.class, builder::buildClient);
        assertTrue(error.getMessage().contains("\"statusCode\":401"), error.getMessage());
    }

    @Test
    void aServerWithoutDirectModeNamesTheGateway() {
        try (var server = new Server("--memory", "--no-direct");
                var client = server.client(station.way).directMode().buildClient()) {
            client.createDatabase("d");
            client.getDatabase("d").createContainer("c", "/pk");
            CosmosContainer container = client.getDatabase("d").getContainer("c");
            var error = refused(400, () -> container.createItem(item("{id: 'a', pk: 'x'}")));
            assertTrue(error.getMessage().contains("gateway"), error.getMessage());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"SESSION", "EVENTUAL", "CONSISTENT_PREFIX"})
    void aClientMayAskForLess(ConsistencyLevel level) {
        CosmosContainer made = makeContainer();
        try (var client = station.server().client(station.way).consistencyLevel(level).buildClient()) {
            CosmosContainer container = client.getDatabase(database.getId()).getContainer(made.getId());
            container.createItem(item("{id: 'a', pk: 'x'}"));
            assertNotNull(find(container, "a", X));
            assertEquals(List.of("a"), ids(container));
        }
    }
}
