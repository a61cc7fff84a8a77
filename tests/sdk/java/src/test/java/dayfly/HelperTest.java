package dayfly;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import javax.tools.ToolProvider;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import dayfly.junit.Dayfly;
import dayfly.junit.DayflyExtension;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

/** The JUnit extension: its clock, its reset, its end, and the sample of its page. */
@ExtendWith(DayflyExtension.class)
class HelperTest {
    private static final Path PAGE = Path.of("../../../helpers/java/README.md");

    @Test
    void theClockStandsStillAndMovesBySpans(Dayfly dayfly) {
        long before = dayfly.now();
        dayfly.advance(45);
        assertEquals(before + 45, dayfly.now());
        dayfly.advance(Duration.ofDays(90));
        assertEquals(before + 45 + 7776000, dayfly.now());
    }

    @Test
    void theClockRunsAndIsStopped(Dayfly dayfly) {
        dayfly.run();
        assertTrue(dayfly.admin("clock").contains("\"frozen\":false"));
        dayfly.freeze();
        assertTrue(dayfly.admin("clock").contains("\"frozen\":true"));
    }

    @RepeatedTest(2)
    void eachTestFindsTheServerEmpty(Dayfly dayfly) {
        try (CosmosClient client = new CosmosClientBuilder()
                .endpoint(dayfly.endpoint()).key(dayfly.key()).gatewayMode().buildClient()) {
            assertEquals(0, client.readAllDatabases().stream().count());
            client.createDatabase("shop");
        }
    }

    @Test
    void aServerEndsWithTheProcessThatIsKilled(@TempDir Path folder) throws IOException, InterruptedException {
        var run = run(folder, "new dayfly.junit.Dayfly(); Runtime.getRuntime().halt(9);", Map.of());
        assertEquals(new Run(9, ""), run);
    }

    @Test
    void aServerThatDoesNotStartSaysSo(@TempDir Path folder) throws IOException, InterruptedException {
        var run = run(folder, "new dayfly.junit.Dayfly();", Map.of("DAYFLY_BIN", "false"));
        assertEquals(1, run.status());
        assertTrue(run.printed().contains("'false' did not start"), run.printed());
    }

    @Test
    void theSampleOfThePageRuns(@TempDir Path folder) throws Exception {
        Matcher block = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(Files.readString(PAGE));
        assertTrue(block.find());
        Path source = Files.writeString(folder.resolve("CartsTest.java"), block.group(1));
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, source.toString()));

        var summary = new SummaryGeneratingListener();
        try (var loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
            var sample = DiscoverySelectors.selectClass(loader.loadClass("CartsTest"));
            var request = LauncherDiscoveryRequestBuilder.request().selectors(sample).build();
            LauncherFactory.create().execute(request, summary);
        }
        summary.getSummary().getFailures().forEach(failure -> failure.getException().printStackTrace());
        assertEquals(1, summary.getSummary().getTestsSucceededCount());
    }

    private record Run(int status, String printed) {}

    /** Runs a program to the end of it and of its server, which has the other end of the pipe, too. */
    private static Run run(Path folder, String program, Map<String, String> environment)
            throws IOException, InterruptedException {
        String text = "public class Program { public static void main(String[] none) { " + program + " } }";
        Path source = Files.writeString(folder.resolve("Program.java"), text);
        var builder = new ProcessBuilder(
                "java", "-cp", System.getProperty("java.class.path"), source.toString()).redirectErrorStream(true);
        builder.environment().putAll(environment);
        Process process = builder.start();
        String printed = new String(process.getInputStream().readAllBytes());
        return new Run(process.waitFor(), printed);
    }
}
