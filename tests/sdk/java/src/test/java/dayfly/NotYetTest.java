package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import org.junit.jupiter.api.Test;

/** What is not there yet says so. Each of these fails when its feature comes. */
class NotYetTest extends OverHttpAndHttps {
    private CosmosContainer container() {
        CosmosContainer container = makeContainer();
        container.createItem(item("{id: 'a', pk: 'x', n: 1}"));
        return container;
    }

    private static void assertSaysSo(CosmosException error) {
        assertTrue(error.getMessage().contains("is not supported by dayfly yet."), error.getMessage());
    }

    @Test
    void storedProcedures() {
        CosmosContainer container = container();
        var procedure = new CosmosStoredProcedureProperties("p", "function () {}");
        assertSaysSo(refused(501, () -> container.getScripts().createStoredProcedure(procedure)));
    }
}
