package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.regex.Pattern;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.ThroughputProperties;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A container that asks for more than its throughput: refused, and the SDK's own retry. */
class ThroughputTest {
    private static final int THROUGHPUT = 400;
    private static final Pattern THROTTLED = Pattern.compile("\"total\":\\{[^}]*\"throttled\":(\\d+)");

    private interface Check {
        void of(Server server, CosmosContainer carts);
    }

    /** With a server that refuses, and a container of it. */
    private static void enforced(boolean isDirect, Check check) {
        try (var server = new Server("--memory", "--throughput", "enforced");
                var client = server.client(new Way("http", isDirect)).buildClient()) {
            client.createDatabase("shop");
            var shop = client.getDatabase("shop");
            var throughput = ThroughputProperties.createManualThroughput(THROUGHPUT);
            shop.createContainer(new CosmosContainerProperties("carts", "/pk"), throughput);
            check.of(server, shop.getContainer("carts"));
        }
    }

    private static void create(CosmosContainer carts, int number) {
        carts.createItem(item("id", "i" + number, "pk", "x"));
    }

    private static int throttled(Server server) {
        var figures = THROTTLED.matcher(server.admin("containers/shop/carts/throughput?seconds=1"));
        assertTrue(figures.find());
        return Integer.parseInt(figures.group(1));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whileNoTimePassesARequestStaysRefused(boolean isDirect) {
        enforced(isDirect, (server, carts) -> {
            CosmosException refused = assertThrows(CosmosException.class, () -> {
                for (int number = 0; number < THROUGHPUT; number++) create(carts, number);
            });
            assertEquals(429, refused.getStatusCode());
            assertEquals(3200, refused.getSubStatusCode());
            assertTrue(refused.getRetryAfterDuration().toMillis() > 0);
            // The first time, and then as often as the SDK tries again.
            assertEquals(10, throttled(server));
            server.advance(1);
            create(carts, THROUGHPUT);
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theSdkWaitsAndTriesAgain(boolean isDirect) {
        enforced(isDirect, (server, carts) -> {
            // What it costs is taken when it is done, and is more than there is for two seconds: a clock
            // that runs again may be anywhere in its second.
            carts.createItem(item("id", "large", "pk", "x", "text", "x".repeat(1_900_000)));
            server.run();
            create(carts, 1);
            assertTrue(throttled(server) > 0);
        });
    }
}
