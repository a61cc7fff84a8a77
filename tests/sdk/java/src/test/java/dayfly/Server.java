package dayfly;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;

import com.azure.cosmos.CosmosClientBuilder;
import dayfly.junit.Dayfly;

/** A running server, over http and https, and clients for it. */
final class Server extends Dayfly {
    Server(String... storage) {
        super(storage);
    }

    String address(String scheme) {
        return endpoint().replace("http", scheme);
    }

    int port() {
        return URI.create(endpoint()).getPort();
    }

    /** A client in the making, whose certificates are those of this server. */
    CosmosClientBuilder client(Way way) {
        // What goes directly to the items is always encrypted.
        if (way.scheme().equals("https") || way.isDirect()) trust();
        var builder = new CosmosClientBuilder().endpoint(address(way.scheme())).key(key())
                .contentResponseOnWriteEnabled(true);
        return way.isDirect() ? builder : builder.gatewayMode();
    }

    /** Has the clients that are made from now on trust this server, as keytool would. */
    private void trust() {
        try (InputStream pem = URI.create(endpoint() + "_explorer/emulator.pem").toURL().openStream()) {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setCertificateEntry("dayfly", CertificateFactory.getInstance("X.509").generateCertificate(pem));

            File file = File.createTempFile("dayfly-trust", ".p12");
            file.deleteOnExit();
            try (OutputStream out = Files.newOutputStream(file.toPath())) {
                store.store(out, "dayfly".toCharArray());
            }
            System.setProperty("javax.net.ssl.trustStore", file.getPath());
            System.setProperty("javax.net.ssl.trustStorePassword", "dayfly");
        } catch (IOException | GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }
}
