package dayfly;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClient;

/** A server with clients that tests share: started with the first test, gone with the last. */
enum Station {
    /** Data in memory, clear text. */
    HTTP("http"),
    /** Data on disk, encrypted. */
    HTTPS("https");

    final String scheme;
    private Server server;
    private CosmosClient client;
    private CosmosAsyncClient async;

    Station(String scheme) {
        this.scheme = scheme;
    }

    Server server() {
        if (server == null) server = this == HTTP ? new Server("--memory") : onDisk();
        return server;
    }

    /** Its data is in a new folder, removed at the end. */
    private static Server onDisk() {
        try {
            Path folder = Files.createTempDirectory("dayfly-");
            var server = new Server("--data", folder.toString());
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                server.close();
                remove(folder);
            }));
            return server;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void remove(Path folder) {
        try (Stream<Path> all = Files.walk(folder)) {
            all.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    CosmosClient client() {
        if (client == null) client = server().client(scheme).buildClient();
        return client;
    }

    CosmosAsyncClient async() {
        if (async == null) async = server().client(scheme).buildAsyncClient();
        return async;
    }

    @Override
    public String toString() {
        return scheme;
    }
}
