package dayfly;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import com.azure.cosmos.CosmosClientBuilder;

/** A running server. Its clock stands still until a test moves it. */
final class Server implements AutoCloseable {
    private static final Path SERVE = Path.of("../serve").toAbsolutePath().normalize();
    private static final Pattern ADDRESS =
            Pattern.compile("AccountEndpoint=https://localhost:(\\d+)/;AccountKey=([^;]+);");

    final String key;
    private final Process process;
    private final int port;
    private final HttpClient http = HttpClient.newHttpClient();

    Server(String... storage) {
        try {
            var command = new ArrayList<>(List.of(SERVE.toString()));
            command.addAll(List.of(storage));
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            Matcher address = ADDRESS.matcher(banner());
            if (!address.find()) throw new IllegalStateException("The banner names no address.");
            port = Integer.parseInt(address.group(1));
            key = address.group(2);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        setClock("{\"frozen\": true}");
    }

    /** Kills the server, and waits until it is gone. */
    @Override
    public void close() {
        try {
            process.getOutputStream().close();
            process.waitFor();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    String endpoint(String scheme) {
        return scheme + "://localhost:" + port + "/";
    }

    /** A client in the making, whose certificates are those of this server. */
    CosmosClientBuilder client(String scheme) {
        if (scheme.equals("https")) trust();
        return new CosmosClientBuilder().endpoint(endpoint(scheme)).key(key).gatewayMode()
                .contentResponseOnWriteEnabled(true);
    }

    /** Moves the clock forward, without waiting. */
    void advance(long seconds) {
        setClock("{\"advanceSeconds\": " + seconds + "}");
    }

    /** The second that the clock shows. */
    long now() {
        return Json.item(ask("_admin/v1/clock", request -> request)).get("now").asLong();
    }

    private void setClock(String change) {
        ask("_admin/v1/clock", request -> request.POST(BodyPublishers.ofString(change)));
    }

    /** Has the clients that are made from now on trust this server, as keytool would. */
    private void trust() {
        String certificate = ask("_explorer/emulator.pem", request -> request);
        try (InputStream pem = new ByteArrayInputStream(certificate.getBytes())) {
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

    private interface Change {
        HttpRequest.Builder of(HttpRequest.Builder request);
    }

    private String ask(String path, Change change) {
        var request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/" + path))
                .header("authorization", "Bearer " + key);
        try {
            HttpResponse<String> answer = http.send(change.of(request).build(), BodyHandlers.ofString());
            if (answer.statusCode() != 200) throw new IllegalStateException(path + ": " + answer.body());
            return answer.body();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private String banner() throws IOException {
        var banner = new StringBuilder();
        BufferedReader lines = process.inputReader();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            banner.append(line).append('\n');
            if (line.strip().equals("Started")) return banner.toString();
        }
        close();
        throw new IllegalStateException("The server ended before it had started:\n" + banner);
    }
}
