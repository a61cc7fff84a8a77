package dayfly;

import static dayfly.Json.item;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.function.Supplier;

import com.azure.core.credential.AzureKeyCredential;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;

/** A container that another client deletes, and makes anew: who knew it learns so at once. */
class GoneTest extends OverHttpAndHttps {
    /** Longer than it takes; a client that does not believe what it is told asks for 15 seconds. */
    private static final long SOON = 5_000_000_000L;

    private static <T> T soon(Supplier<T> request) {
        long start = System.nanoTime();
        T answer = request.get();
        long took = System.nanoTime() - start;
        assertTrue(took < SOON, () -> "it took " + took / 1_000_000 + " ms");
        return answer;
    }

    @Test
    void whoReadsLearnsThatAContainerIsGone() {
        CosmosContainer mine = makeContainer();
        try (var other = station.server().client(station.way).buildClient()) {
            CosmosContainer theirs = other.getDatabase(database.getId()).getContainer(mine.getId());
            // From now on it is in a session.
            theirs.createItem(item("{id: 'a', pk: 'x'}"));
            theirs.readItem("a", X, ObjectNode.class);
            mine.delete();
            CosmosException gone = soon(() -> refused(404, () -> theirs.readItem("a", X, ObjectNode.class)));
            if (station.way.isDirect()) assertEquals(1003, gone.getSubStatusCode(), gone.getMessage());
            soon(() -> refused(404, () -> ask(theirs, "SELECT * FROM c")));
            soon(() -> refused(404, () -> theirs.createItem(item("{id: 'b', pk: 'x'}"))));
        }
    }

    @Test
    void whoReadsFindsAContainerThatWasMadeAnew() {
        CosmosContainer mine = makeContainer();
        try (var other = station.server().client(station.way).buildClient()) {
            CosmosContainer theirs = other.getDatabase(database.getId()).getContainer(mine.getId());
            for (int n = 0; n < 20; n++) theirs.createItem(item("id", "i" + n, "pk", "x"));
            theirs.readItem("i7", X, ObjectNode.class);
            mine.delete();
            database.createContainer(mine.getId(), "/pk");
            mine.createItem(item("{id: 'new', pk: 'x'}"));
            ObjectNode read = soon(() -> theirs.readItem("new", X, ObjectNode.class).getItem());
            assertEquals("new", read.get("id").asText());
            soon(() -> refused(404, () -> theirs.readItem("i7", X, ObjectNode.class)));
            theirs.createItem(item("{id: 'mine', pk: 'x'}"));
            assertEquals(List.of("mine", "new"), soon(() -> ids(theirs)));
        }
    }

    /** What is refused before anything is looked for has no token of a session. */
    @Test
    void whoHasAnotherKeyByNowLearnsSo() {
        CosmosContainer mine = makeContainer();
        mine.createItem(item("{id: 'a', pk: 'x'}"));
        var builder = station.server().client(station.way);
        var key = new AzureKeyCredential(station.server().key());
        try (var other = builder.credential(key).buildClient()) {
            CosmosContainer theirs = other.getDatabase(database.getId()).getContainer(mine.getId());
            theirs.upsertItem(item("{id: 'a', pk: 'x'}"));
            theirs.readItem("a", X, ObjectNode.class);
            key.update("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
            soon(() -> refused(401, () -> theirs.readItem("a", X, ObjectNode.class)));
        }
    }
}
