package dayfly;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Consumer;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * What every test gets: a server, a client, a database of its own.
 *
 * All tests run four times: over http with a server that keeps its data in memory, and
 * over https with one that keeps it on disk; in gateway mode, and in direct mode.
 */
@ParameterizedClass(name = "{0}")
@EnumSource(Station.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class OverHttpAndHttps {
    static final int DAY = 24 * 60 * 60;
    static final int NINETY_DAYS = 90 * DAY;
    static final int YEAR = 365 * DAY;
    /** So much throughput that a container has four ranges. */
    static final int WIDE = 20000;

    static final PartitionKey X = key("x");

    @Parameter
    Station station;

    CosmosDatabase database;

    @BeforeEach
    void makeDatabase() {
        database = makeDatabase(unique("db"));
    }

    @AfterEach
    void deleteDatabase() {
        database.delete();
    }

    CosmosClient client() {
        return station.client();
    }

    void advance(long seconds) {
        station.server().advance(seconds);
    }

    CosmosDatabase makeDatabase(String id) {
        client().createDatabase(id);
        return client().getDatabase(id);
    }

    /** A container with the partition key {@code /pk}, changed as told. */
    CosmosContainer makeContainer(Consumer<CosmosContainerProperties> change) {
        var properties = new CosmosContainerProperties(unique("c"), "/pk");
        change.accept(properties);
        database.createContainer(properties);
        return database.getContainer(properties.getId());
    }

    /** A container in which nothing expires. */
    CosmosContainer makeContainer() {
        return makeContainer(properties -> {});
    }

    CosmosContainer makeContainer(int defaultTtl) {
        return makeContainer(properties -> properties.setDefaultTimeToLiveInSeconds(defaultTtl));
    }

    /** A container of four ranges. */
    static CosmosContainer makeWideContainer(CosmosDatabase database, CosmosContainerProperties properties) {
        database.createContainer(properties, ThroughputProperties.createManualThroughput(WIDE));
        return database.getContainer(properties.getId());
    }

    static String unique(String kind) {
        return kind + "-" + UUID.randomUUID();
    }

    /** The key of these values; null is a value. */
    static PartitionKey key(Object... values) {
        if (values.length == 1) return new PartitionKey(values[0]);
        var key = new PartitionKeyBuilder();
        for (Object value : values) {
            if (value instanceof String text) key.add(text);
            else if (value instanceof Number number) key.add(number.doubleValue());
            else if (value instanceof Boolean truth) key.add(truth);
            else key.addNullValue();
        }
        return key.build();
    }

    /** A partition key of these paths, hierarchical if there are several. */
    static PartitionKeyDefinition keyPaths(String... paths) {
        return new PartitionKeyDefinition().setPaths(List.of(paths))
                .setKind(paths.length == 1 ? PartitionKind.HASH : PartitionKind.MULTI_HASH)
                .setVersion(PartitionKeyDefinitionVersion.V2);
    }

    /** The item, or null where the SDK says 404. */
    static ObjectNode find(CosmosContainer container, String id, PartitionKey key) {
        try {
            return container.readItem(id, key, ObjectNode.class).getItem();
        } catch (CosmosException error) {
            if (error.getStatusCode() == 404) return null;
            throw error;
        }
    }

    /** The ids of all items, in order of their names. */
    static List<String> ids(CosmosContainer container) {
        return ask(container, "SELECT VALUE c.id FROM c").stream().map(String::valueOf).sorted().toList();
    }

    static List<Object> ask(CosmosContainer container, String query) {
        return ask(container, query, new CosmosQueryRequestOptions());
    }

    static List<Object> ask(CosmosContainer container, String query, CosmosQueryRequestOptions options) {
        return container.queryItems(query, options, JsonNode.class).stream().map(Json::plain).toList();
    }

    static List<Object> ask(CosmosContainer container, String query, Map<String, ?> parameters) {
        var named = parameters.entrySet().stream()
                .map(each -> new SqlParameter("@" + each.getKey(), each.getValue())).toList();
        return container.queryItems(new SqlQuerySpec(query, named), new CosmosQueryRequestOptions(), JsonNode.class)
                .stream().map(Json::plain).toList();
    }

    /** A page of a query, with the token of the next, if there is one. */
    record QueryPage(List<Object> rows, String token) {
        static QueryPage of(FeedResponse<JsonNode> response) {
            List<Object> rows = response.getResults().stream().map(Json::plain).toList();
            return new QueryPage(rows, response.getContinuationToken());
        }
    }

    /** The pages of a query, all of them or from a token on. */
    static List<QueryPage> askByPage(CosmosContainer container, String query, String token, int size) {
        return askByPage(container, query, new CosmosQueryRequestOptions(), token, size);
    }

    static List<QueryPage> askByPage(
            CosmosContainer container, String query, CosmosQueryRequestOptions options, String token, int size) {
        var pages = new ArrayList<QueryPage>();
        container.queryItems(query, options, JsonNode.class).iterableByPage(token, size)
                .forEach(page -> pages.add(QueryPage.of(page)));
        return pages;
    }

    static List<Object> rows(List<QueryPage> pages) {
        return pages.stream().flatMap(page -> page.rows().stream()).toList();
    }

    /** New ones for each request: the SDK keeps its own state in them. */
    static CosmosItemRequestOptions plain() {
        return new CosmosItemRequestOptions();
    }

    static CosmosItemRequestOptions onlyIf(String etag) {
        return new CosmosItemRequestOptions().setIfMatchETag(etag);
    }

    /** The error of a request that must be refused with this status. */
    static CosmosException refused(int status, Executable request) {
        CosmosException error = assertThrows(CosmosException.class, request);
        assertEquals(status, error.getStatusCode(), error.getMessage());
        return error;
    }
}
