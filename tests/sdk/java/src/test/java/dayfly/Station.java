package dayfly;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClient;

/** A server with clients that tests share: started with the first test, gone with the last. */
enum Station {
    /** Data in memory, clear text. */
    HTTP("http", "--memory"),
    /** Data on disk, encrypted. */
    HTTPS("https", "--on-disk");

    final String scheme;
    private final String storage;
    private Server server;
    private CosmosClient client;
    private CosmosAsyncClient async;

    Station(String scheme, String storage) {
        this.scheme = scheme;
        this.storage = storage;
    }

    Server server() {
        if (server == null) server = new Server(storage);
        return server;
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
