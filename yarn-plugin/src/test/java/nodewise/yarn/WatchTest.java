package nodewise.yarn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Against a server that answers as it is told. */
class WatchTest {
    @TempDir Path folder;
    private HttpServer server;
    private Path file;
    private Watch watch;
    private volatile int status = 200;
    private volatile byte[] body = Given.answer("free", Map.of("a", 0.25), 1.0, "fresh");
    private volatile long pause;
    private final List<String> asked = new ArrayList<>();

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", this::answer);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        file = folder.resolve(Settings.FILE);
        write("first.score = free higher 0..1");
        watch = new Watch(file);
    }

    @AfterEach
    void stop() {
        server.stop(0);
    }

    private void write(String line) throws IOException {
        String url = "service.url = http://127.0.0.1:" + server.getAddress().getPort();
        Files.writeString(file, url + "\nservice.timeout-ms = 20000\nservice.poll-interval-ms = 100\n" + line + "\n");
        Files.setLastModifiedTime(file, FileTime.fromMillis(System.nanoTime() / 1000));
    }

    /** From the next turn on, wait no more than 300 ms for an answer. */
    private void hurry() throws IOException {
        Files.writeString(file, Files.readString(file).replace("20000", "300"));
        Files.setLastModifiedTime(file, FileTime.fromMillis(System.nanoTime() / 1000));
    }

    private void answer(HttpExchange exchange) throws IOException {
        asked.add(exchange.getRequestURI() + " " + exchange.getRequestHeaders().getFirst("Authorization") + " "
            + exchange.getRequestHeaders().getFirst("If-None-Match"));
        boolean same = "\"tag\"".equals(exchange.getRequestHeaders().getFirst("If-None-Match"));
        exchange.getResponseHeaders().set("ETag", "\"tag\"");
        exchange.sendResponseHeaders(same ? 304 : status, same ? -1 : body.length);
        if (!same) {
            exchange.getResponseBody().write(body, 0, 1);
            exchange.getResponseBody().flush();
            try {
                TimeUnit.MILLISECONDS.sleep(pause);
            } catch (InterruptedException error) {
                throw new IOException(error);
            }
            exchange.getResponseBody().write(body, 1, body.length - 1);
        }
        exchange.close();
    }

    private boolean knows() {
        return watch.known().isPresent();
    }

    @Test
    void valuesThatHoldStillAreNotSentAgain() throws InterruptedException {
        assertFalse(knows());
        watch.poll();
        watch.poll();

        assertTrue(knows());
        assertEquals(0.25, watch.known().orElseThrow().values().get("free", "a").number());
        assertEquals(List.of("/api/v1/data?name=free null null", "/api/v1/data?name=free null \"tag\""), asked);
        assertEquals(2, watch.question.polls);
        assertEquals(0, watch.question.failures);
    }

    @Test
    void ofSeveralServicesTheOneThatAnswersIsAskedFirstFromThenOn() throws IOException, InterruptedException {
        // Connections are taken at the first address, and never answered.
        try (ServerSocket frozen = new ServerSocket(0, 8, InetAddress.getLoopbackAddress())) {
            String first = "service.url = http://127.0.0.1:" + frozen.getLocalPort() + ", http://";
            Files.writeString(file, Files.readString(file).replace("service.url = http://", first).replace("20000", "300"));
            Files.setLastModifiedTime(file, FileTime.fromMillis(System.nanoTime() / 1000));
            watch.poll();
            assertTrue(knows(), watch.question.failed);
            long began = System.nanoTime();
            watch.poll();
            assertTrue(System.nanoTime() - began < 300_000_000, "the first was asked again");
        }
        assertEquals(List.of("/api/v1/data?name=free null null", "/api/v1/data?name=free null \"tag\""), asked);

        server.stop(0);
        watch.poll();
        assertFalse(knows());
        assertTrue(watch.question.failed.contains(server.getAddress().getPort() + " gives no values"), watch.question.failed);
    }

    @Test
    void ofSeveralServicesTheOtherOneIsAskedWhenTheFirstCannotEvenBeAsked() throws IOException, InterruptedException {
        Files.writeString(file, Files.readString(file).replace("service.url = ", "service.url = http://master..one:8400, "));
        Files.setLastModifiedTime(file, FileTime.fromMillis(System.nanoTime() / 1000));
        watch.poll();
        assertTrue(knows(), watch.question.failed);
        assertEquals(0, watch.question.failures);
    }

    @Test
    void aTokenIsReadFromItsFileEachTime() throws IOException, InterruptedException {
        Path token = Files.writeString(folder.resolve("token"), "one\n");
        write("first.score = free higher 0..1\nservice.token-file = " + token);
        watch.poll();
        Files.writeString(token, "two\n");
        watch.poll();

        assertEquals(List.of("/api/v1/data?name=free Bearer one null", "/api/v1/data?name=free Bearer two \"tag\""), asked);
    }

    @Test
    void aTokenFileThatIsNoTokenTellsNobodyWhatItHas() throws IOException, InterruptedException {
        Path token = Files.writeString(folder.resolve("token"), "secret\nmore\n");
        write("first.score = free higher 0..1\nservice.token-file = " + token);
        status = 401;
        watch.poll();

        assertTrue(watch.question.failed.contains("401"), watch.question.failed);
        assertFalse(watch.question.failed.contains("secret"), watch.question.failed);
    }

    @Test
    void anErrorIsToldAndEndsByItself() throws InterruptedException {
        watch.poll();
        status = 500;
        body = "oh no".getBytes(StandardCharsets.UTF_8);
        server.removeContext("/");
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        watch.poll();
        assertFalse(knows());
        assertTrue(watch.question.failed.contains("500 oh no"), watch.question.failed);

        status = 200;
        for (String nonsense : new String[] {"", "nonsense", "[]", "{}", "{\"data\": 5}", "{\"data\": [{\"data_name\": \"other\"}]}"}) {
            body = nonsense.getBytes(StandardCharsets.UTF_8);
            watch.poll();
            assertFalse(knows(), nonsense);
        }

        body = Given.answer("free", Map.of("a", 0.75), 1.0, "fresh");
        watch.poll();
        assertEquals(0.75, watch.known().orElseThrow().values().get("free", "a").number());
        assertEquals("", watch.question.failed);
        assertEquals(7, watch.question.failures);
    }

    @Test
    void aSlowAnswerIsNotWaitedFor() throws IOException, InterruptedException {
        hurry();
        pause = 20_000;
        long begun = System.nanoTime();
        watch.poll();

        assertFalse(knows());
        assertTrue(System.nanoTime() - begun < 10_000_000_000L);
        assertTrue(watch.question.failed.contains("TimeoutException"), watch.question.failed);
    }

    @Test
    void aRequestThatWasGivenUpIsEnded() throws IOException, InterruptedException {
        CountDownLatch ended = new CountDownLatch(1);
        server.removeContext("/");
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 0);
            try {
                while (true) { // a drop at a time, until nobody listens
                    exchange.getResponseBody().write(' ');
                    exchange.getResponseBody().flush();
                    TimeUnit.MILLISECONDS.sleep(20);
                }
            } catch (IOException | InterruptedException error) {
                ended.countDown();
            }
        });
        hurry();
        watch.poll();

        assertFalse(knows());
        assertTrue(ended.await(20, TimeUnit.SECONDS));
    }

    @Test
    void anAnswerWithoutEndIsBrokenOffBeforeItFillsTheHeap() throws InterruptedException {
        CountDownLatch ended = new CountDownLatch(1);
        AtomicLong sent = new AtomicLong();
        byte[] part = new byte[1 << 16];
        server.removeContext("/");
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 0);
            try {
                while (sent.addAndGet(part.length) < 8L * Question.LARGEST) {
                    exchange.getResponseBody().write(part);
                }
            } catch (IOException error) {
                ended.countDown();
            }
        });
        watch.poll();

        assertFalse(knows());
        assertTrue(watch.question.failed.contains("more than 33554432 bytes"), watch.question.failed);
        assertTrue(ended.await(20, TimeUnit.SECONDS), "the connection was not closed");
        assertTrue(sent.get() < 2L * Question.LARGEST, sent + " bytes were taken");
    }

    @Test
    void anAnswerThatSaysItIsTooLargeIsNotWaitedFor() throws IOException, InterruptedException {
        CountDownLatch told = new CountDownLatch(1);
        server.removeContext("/");
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, Question.LARGEST + 1L);
            exchange.getResponseBody().flush();
            try {
                told.await(); // not one byte of it comes
            } catch (InterruptedException error) {
                throw new IOException(error);
            }
        });
        watch.poll();
        told.countDown();

        assertFalse(knows());
        assertTrue(watch.question.failed.contains("more than 33554432 bytes"), watch.question.failed);
    }

    /** Answer from now on with parts: the query of each but the last leads to the next one. */
    private void answerInParts(byte[]... parts) {
        server.removeContext("/");
        server.createContext("/", exchange -> {
            asked.add(exchange.getRequestURI().getQuery() + " " + exchange.getRequestHeaders().getFirst("If-None-Match"));
            String query = exchange.getRequestURI().getQuery();
            int part = query.contains("after") ? Integer.parseInt(query.replaceAll(".*after=", "")) : 0;
            boolean same = "\"tag\"".equals(exchange.getRequestHeaders().getFirst("If-None-Match"));
            exchange.getResponseHeaders().set("ETag", part == 0 ? "\"tag\"" : "\"other\"");
            if (part + 1 < parts.length) {
                exchange.getResponseHeaders().set("Link", "<?name=free&after=" + (part + 1) + ">; rel=\"next\"");
            }
            exchange.sendResponseHeaders(same ? 304 : 200, same ? -1 : parts[part].length);
            if (!same) {
                exchange.getResponseBody().write(parts[part]);
            }
            exchange.close();
        });
    }

    @Test
    void aLongAnswerIsReadInAllItsParts() throws InterruptedException {
        byte[] most = Given.answer("free", Map.of("a", 0.25, "b", 0.5), 1.0, "fresh");
        answerInParts(most, Given.answer("free", Map.of("c", 0.75), 1.0, "fresh"));
        watch.poll();
        watch.poll();

        assertEquals("", watch.question.failed);
        Values values = watch.known().orElseThrow().values();
        assertEquals(0.25, values.get("free", "a").number());
        assertEquals(0.75, values.get("free", "c").number());
        assertEquals(List.of("name=free null", "name=free&after=1 null", "name=free \"tag\""), asked);
    }

    @Test
    void partsWithoutEndAreGivenUp() throws InterruptedException {
        byte[][] parts = new byte[Question.MOST_PARTS + 1][];
        Arrays.fill(parts, body);
        answerInParts(parts);
        watch.poll();

        assertFalse(knows());
        assertTrue(watch.question.failed.contains("more than 64 parts"), watch.question.failed);
        assertEquals(Question.MOST_PARTS, asked.size());
    }

    @Test
    void partsTogetherFillTheHeapNoMoreThanOne() throws InterruptedException {
        byte[] spaces = new byte[Question.LARGEST / 3];
        Arrays.fill(spaces, (byte) ' ');
        answerInParts(spaces, spaces, spaces, body);
        watch.poll();

        assertFalse(knows());
        assertTrue(watch.question.failed.contains("more than 33554432 bytes"), watch.question.failed);
    }

    @Test
    void aPartThatDoesNotComeLeavesNothingHalf() throws IOException, InterruptedException {
        answerInParts(body, "nonsense".getBytes(StandardCharsets.UTF_8));
        watch.poll();

        assertFalse(knows());
    }

    @Test
    void whatWasNotConfirmedForSomeIntervalsIsNotKnown() throws IOException, InterruptedException {
        watch.poll();
        assertTrue(knows());
        hurry();
        watch.poll();
        TimeUnit.MILLISECONDS.sleep(700); // 3 * 100 + 300 are allowed

        assertFalse(knows());
    }

    @Test
    void settingsAreTakenOverWhenTheyChangeAndOnlyIfTheyCanBeUsed() throws IOException, InterruptedException {
        write("first.score = free higher 0..2");
        watch.poll();
        assertEquals(2, watch.settings.judgement("first").terms().get(0).high());

        write("first.score = free higher 5..2");
        watch.poll();
        assertEquals(2, watch.settings.judgement("first").terms().get(0).high());
        assertTrue(watch.refused.contains("first.score says free higher 5..2"), watch.refused);
        assertTrue(knows());

        write("second.score = free higher 0..3");
        watch.poll();
        assertTrue(watch.refused.contains("first.score is missing"), watch.refused);

        write("first.score = free higher 0..4");
        watch.poll();
        assertEquals(4, watch.settings.judgement("first").terms().get(0).high());
        assertEquals("", watch.refused);

        Path away = Files.move(file, folder.resolve("away"));
        watch.poll();
        assertTrue(watch.refused.contains("NoSuchFile"), watch.refused);
        Files.move(away, file);
        watch.poll();
        assertEquals("", watch.refused);
    }

    @Test
    void valuesAreJudgedByTheSettingsThatTheyWereAskedWith() throws IOException, InterruptedException {
        watch.poll();
        status = 500;
        write("first.score = other higher 0..1");
        server.removeContext("/");
        server.createContext("/", exchange -> {
            assertEquals("free", watch.known().orElseThrow().settings().judgement("first").terms().get(0).name());
            exchange.sendResponseHeaders(500, -1);
            exchange.close();
            asked.add("other");
        });
        watch.poll();

        assertEquals("other", asked.get(asked.size() - 1));
        assertFalse(knows());
    }

    @Test
    void anOrderFollowsTheValuesAndIsStocksWithoutThem() throws InterruptedException {
        List<SchedulerNode> nodes = List.of(Given.node("a"), Given.node("b"), Given.node("c"));
        Given.place(nodes.get(0), 2048, 1);
        Given.place(nodes.get(1), 1024, 1);
        MeasuredOrder<SchedulerNode> order = new MeasuredOrder<>("first", watch) {};
        order.addAndRefreshNodesSet(nodes, "");
        assertEquals(List.of("c", "b", "a"), Given.hosts(order.getPreferredNodeIterator(nodes, "")), "stock: the least allocated first");

        body = Given.answer("free", Map.of("a", 0.9, "b", 0.1, "c", 0.5), 1.0, "fresh");
        watch.poll();
        assertEquals("", watch.question.failed);
        order.addAndRefreshNodesSet(nodes, "");
        assertEquals(List.of("a", "c", "b"), Given.hosts(order.getPreferredNodeIterator(nodes, "")));
        assertEquals(3, order.getNodesPerPartition("").size());

        server.stop(0);
        watch.poll();
        order.addAndRefreshNodesSet(nodes, "");
        assertEquals(List.of("c", "b", "a"), Given.hosts(order.getPreferredNodeIterator(nodes, "")));
        assertEquals(3, order.getNodesPerPartition("").size());
    }
}
