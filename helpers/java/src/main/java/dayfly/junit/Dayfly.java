package dayfly.junit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A running server. Its clock stands still until a test moves it. */
public class Dayfly implements AutoCloseable {
    /**
     * Runs the server until standard input ends. The tests hold the other end of that pipe, so
     * the server goes with them, however they go. Ctrl-C reaches all; the pipe follows.
     */
    private static final String LEASH =
            "trap '' HUP INT TERM; \"$@\" & exec >/dev/null; cat; { kill -9 $!; wait; } 2>/dev/null";
    private static final Pattern ADDRESS =
            Pattern.compile("AccountEndpoint=(http://localhost:(\\d+)/);AccountKey=([^;]+);");
    private static final Pattern NOW = Pattern.compile("\"now\":(\\d+)");

    private final Process process;
    private final Matcher address;
    private final HttpClient http = HttpClient.newBuilder().proxy(HttpClient.Builder.NO_PROXY).build();

    /** Starts a server, with these flags, or else with {@code --memory}. */
    public Dayfly(String... flags) {
        String binary = Optional.ofNullable(System.getenv("DAYFLY_BIN")).filter(path -> !path.isEmpty()).orElse("dayfly");
        var command = new ArrayList<>(List.of("sh", "-c", LEASH, "sh", binary));
        command.add("--test-clock");
        if (!List.of(flags).contains("--listen")) command.addAll(List.of("--listen", "127.0.0.1:0"));
        command.addAll(flags.length == 0 ? List.of("--memory") : List.of(flags));
        var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        // The server takes every DAYFLY_ variable for a setting. Of those, it is given what to log.
        builder.environment().putIfAbsent("DAYFLY_LOG", "warn");
        builder.environment().keySet().removeIf(name -> name.startsWith("DAYFLY_") && !name.equals("DAYFLY_LOG"));
        try {
            process = builder.start();
            String banner = banner();
            address = ADDRESS.matcher(banner);
            if (!address.find()) {
                close();
                throw new IllegalStateException("'" + binary
                        + "' did not start. Is dayfly on the PATH, or in DAYFLY_BIN?\n" + banner);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        freeze();
        // Otherwise the SDK refuses http. It looks when the first client is made.
        System.getProperties().putIfAbsent("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
    }

    /** Such as {@code http://localhost:40123/}. */
    public final String endpoint() {
        return address.group(1);
    }

    public final String key() {
        return address.group(3);
    }

    public final String connectionString() {
        return address.group();
    }

    /** Moves the clock forward, without waiting. */
    public final void advance(Duration span) {
        advance(span.toSeconds());
    }

    /** Moves the clock forward by seconds, without waiting. */
    public final void advance(long seconds) {
        admin("clock", "{\"advanceSeconds\":" + seconds + "}");
    }

    /** Stops the clock; it moves by {@code advance} alone. */
    public final void freeze() {
        admin("clock", "{\"frozen\":true}");
    }

    /** Lets the clock run, from where it is. */
    public final void run() {
        admin("clock", "{\"frozen\":false}");
    }

    /** What the clock shows, in seconds since 1970. */
    public final long now() {
        return Long.parseLong(NOW.matcher(admin("clock")).results().findFirst().orElseThrow().group(1));
    }

    /** Removes all databases. The clock stays where it is. */
    public final void reset() {
        admin("reset", "{}");
    }

    /** The answer of a call of the admin API that changes nothing, such as {@code containers/shop/carts/ttl}. */
    public final String admin(String call) {
        return ask(request(call).build());
    }

    /** The answer of a call of the admin API with a body. */
    public final String admin(String call, String change) {
        return ask(request(call).POST(BodyPublishers.ofString(change)).build());
    }

    /** Ends the server, and waits until it is gone. One that is not closed ends with this process. */
    @Override
    public final void close() {
        try {
            process.getOutputStream().close();
            process.waitFor();
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
            if (line.equals("Started")) return banner.toString();
        }
        return banner.toString();
    }

    private HttpRequest.Builder request(String call) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + address.group(2) + "/_admin/v1/" + call))
                .header("authorization", "Bearer " + key());
    }

    private String ask(HttpRequest request) {
        try {
            HttpResponse<String> answer = http.send(request, BodyHandlers.ofString());
            if (answer.statusCode() != 200) throw new IllegalStateException(answer.body());
            return answer.body();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
