package dayfly;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The samples of docs/sdks.md, run as the page has them. */
class SampleTest extends OverHttpAndHttps {
    private static final String GATEWAY_MODE = ".gatewayMode()";
    private static final Path PAGE = Path.of("../../../docs/sdks.md");

    /** The first block of the page in this language. */
    private static String block(String language) throws IOException {
        Matcher block = Pattern.compile("```" + language + "\n(.*?)```", Pattern.DOTALL)
                .matcher(Files.readString(PAGE));
        if (!block.find()) throw new IllegalStateException(PAGE + " has no sample for " + language);
        return block.group(1);
    }

    /** The first line of the page that starts so. */
    private static String line(String start) throws IOException {
        return Files.readAllLines(PAGE).stream().filter(each -> each.startsWith(start)).findFirst().orElseThrow();
    }

    private String run(Path folder, String... command) throws IOException, InterruptedException {
        var process = new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true);
        process.environment().put("COSMOS_ENDPOINT", station.server().address(station.way.scheme()));
        process.environment().put("COSMOS_KEY", station.server().key());
        Process started = process.start();
        String printed = new String(started.getInputStream().readAllBytes());
        assertEquals(0, started.waitFor(), printed);
        return printed;
    }

    @Test
    void theSampleOfThePageRuns(@TempDir Path folder) throws IOException, InterruptedException {
        String address = station.server().address("http").replaceAll("http://|/$", "");
        run(folder, "sh", "-c", line("curl ").replace("localhost:8081", address));
        run(folder, "sh", "-c", line("keytool "));

        String sample = block("java");
        // What the page says of direct mode: that is what it uses without this word.
        assertTrue(sample.contains(GATEWAY_MODE), sample);
        if (station.way.isDirect()) sample = sample.replace(GATEWAY_MODE, "");
        Files.writeString(folder.resolve("Carts.java"), sample);
        String printed = run(folder, "java", "-Djavax.net.ssl.trustStore=dayfly.p12",
                "-Djavax.net.ssl.trustStorePassword=changeit",
                "-cp", System.getProperty("java.class.path"), "Carts.java");
        assertEquals(List.of("3"), printed.lines().toList());
        client().getDatabase("shop").delete();
    }
}
