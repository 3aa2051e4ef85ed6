package nodewise.yarn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Answers that are late, wrong, without end or in parts. */
class QuestionTest extends WatchCase {
    @Test
    void anErrorIsToldAndEndsByItself() throws InterruptedException {
        watch.poll();
        status = 500;
        body = "oh no".getBytes(StandardCharsets.UTF_8);
        answerBy(exchange -> {
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
        answerBy(exchange -> {
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
        answerBy(exchange -> {
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
        answerBy(exchange -> {
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
        answerBy(exchange -> {
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
}
