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
    HTTP(new Way("http", false)),
    /** Data on disk, encrypted. */
    HTTPS(new Way("https", false)),
    /** Data in memory, all but the items in clear text. */
    HTTP_DIRECT(new Way("http", true)),
    /** Data on disk, encrypted; what the SDK does if it is told nothing. */
    HTTPS_DIRECT(new Way("https", true));

    final Way way;
    private Server server;
    private CosmosClient client;
    private CosmosAsyncClient async;

    Station(Way way) {
        this.way = way;
    }

    Server server() {
        if (server == null) server = way.scheme().equals("http") ? new Server("--memory") : onDisk();
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
        if (client == null) client = server().client(way).buildClient();
        return client;
    }

    CosmosAsyncClient async() {
        if (async == null) async = server().client(way).buildAsyncClient();
        return async;
    }

    @Override
    public String toString() {
        return way.isDirect() ? way.scheme() + ", direct" : way.scheme();
    }
}
