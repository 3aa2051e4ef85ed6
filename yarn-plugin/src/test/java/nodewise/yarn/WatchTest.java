package nodewise.yarn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.junit.jupiter.api.Test;

/** What is known, of which service and by which settings. */
class WatchTest extends WatchCase {
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
            replace("service.url = http://", first);
            hurry();
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
        replace("service.url = ", "service.url = http://master..one:8400, ");
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
        answerBy(exchange -> {
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
