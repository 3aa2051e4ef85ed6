package nodewise.yarn;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What one thread asks the information service for again and again, and what it answered last. */
final class Question {
    private static final Logger LOG = LoggerFactory.getLogger(Question.class);
    /** Bytes of an answer with all its parts; those of 10,000 nodes have about 1.5 MB for each name. */
    static final int LARGEST = 32 << 20;
    /** Parts of an answer; the service makes them of about 8 MiB. */
    static final int MOST_PARTS = 64;
    private static final Pattern NEXT = Pattern.compile("<(\\?[^>]+)>; rel=\"next\"");

    private final boolean strict;
    private final String otherwise;
    private HttpClient client;
    private Settings settings;
    private Set<String> names = Set.of();
    private String etag;
    /** Which of the services answered last. */
    private int at;
    private volatile Known known;
    volatile long polls;
    volatile long failures;
    /** What is wrong with the service; empty when nothing is. */
    volatile String failed = "";

    /** What the service said when it was asked by these settings, and when it last said that this still holds. */
    record Known(Settings settings, Values values, long confirmed) {}

    /** `strict` says that every name has to be registered; `otherwise` is what becomes of nodes without values. */
    Question(boolean strict, String otherwise) {
        this.strict = strict;
        this.otherwise = otherwise;
    }

    /** Empty when the service is down, slow, or talks nonsense; else confirmed some intervals ago at most. */
    Optional<Known> known(Settings now) {
        long longest = 3 * now.interval().toNanos() + now.timeout().toNanos();
        return Optional.ofNullable(known).filter(found -> System.nanoTime() - found.confirmed() <= longest);
    }

    /** Milliseconds since the service last confirmed what is known; -1 when nothing is. */
    long age() {
        Known found = known;
        return found == null ? -1 : (System.nanoTime() - found.confirmed()) / 1_000_000;
    }

    /** Ask once; what goes wrong is told once, however often it does. */
    void poll(Settings by, Set<String> wanted) throws InterruptedException {
        polls++;
        String complaint = "";
        try {
            take(by, wanted);
            askAny();
        } catch (IOException | ExecutionException | TimeoutException | RuntimeException | Error error) { // an Error would end YARN
            known = null;
            etag = null;
            failures++;
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            complaint = by.services() + " gives no values, so " + otherwise + ": " + cause;
        }
        if (failed.isEmpty() != complaint.isEmpty()) {
            LOG.warn(complaint.isEmpty() ? by.services() + " gives values again" : complaint);
        }
        failed = complaint;
    }

    private void take(Settings by, Set<String> wanted) {
        if (by != settings) {
            at = 0;
            client = HttpClient.newBuilder().proxy(HttpClient.Builder.NO_PROXY).connectTimeout(by.timeout()).build();
        }
        if (by != settings || !wanted.equals(names)) {
            etag = null;
        }
        settings = by;
        names = wanted;
    }

    /** Ask the service that answered last, and if it does not, the others: of services of one database one is active. */
    private void askAny() throws IOException, InterruptedException, ExecutionException, TimeoutException {
        for (int left = settings.urls().size(); left > 0; left--) {
            try {
                ask();
                return;
            } catch (IOException | ExecutionException | TimeoutException | RuntimeException error) {
                at = (at + 1) % settings.urls().size();
                etag = null; // it is of one service
                if (left == 1) {
                    throw error;
                }
            }
        }
    }

    /** A long answer comes in parts, each of which names the query of the next. */
    private void ask() throws IOException, InterruptedException, ExecutionException, TimeoutException {
        long deadline = System.nanoTime() + settings.timeout().toNanos();
        Values.Parts parts = new Values.Parts();
        HttpResponse<byte[]> first = send(query(), etag, 0, deadline);
        long now = System.nanoTime();
        if (first.statusCode() == 304 && etag != null) {
            known = new Known(settings, known.values(), now);
            return;
        }
        HttpResponse<byte[]> answer = first;
        parts.add(body(answer), now);
        int bytes = answer.body().length;
        Optional<String> next = next(answer);
        for (int count = 1; next.isPresent(); count++) {
            if (count == MOST_PARTS) {
                throw new IOException("its answer has more than " + MOST_PARTS + " parts");
            }
            answer = send(next.get(), null, bytes, deadline);
            parts.add(body(answer), System.nanoTime());
            bytes += answer.body().length;
            next = next(answer);
        }
        known = new Known(settings, parts.values(strict ? names : Set.of()), now);
        etag = first.headers().firstValue("ETag").orElse(null); // it is of all parts
    }

    private String query() {
        return "?" + names.stream().map(name -> "name=" + name.replace(":", "%3A")).collect(Collectors.joining("&"))
            + (strict ? "" : "&skip_unknown=true");
    }

    /** What is answered to a query until `deadline`, at most LARGEST bytes with the `before` ones of earlier parts. */
    private HttpResponse<byte[]> send(String query, String tag, int before, long deadline)
            throws IOException, InterruptedException, ExecutionException, TimeoutException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(settings.urls().get(at) + "/api/v1/data" + query));
        if (settings.tokenFile() != null) {
            // Only what a token is made of, or Java's complaint would tell it.
            request.header("Authorization", "Bearer " + Files.readString(settings.tokenFile()).replaceAll("[^!-~]", ""));
        }
        if (tag != null) {
            request.header("If-None-Match", tag);
        }
        // The timeout of a request ends with its first byte, and a body may come drop by drop.
        CompletableFuture<HttpResponse<byte[]>> sent = client.sendAsync(request.build(), BoundedBody.handler(before, LARGEST));
        try {
            return sent.get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        } finally {
            sent.cancel(true); // closes the connection of one that was given up
        }
    }

    private static byte[] body(HttpResponse<byte[]> answer) throws IOException {
        if (answer.statusCode() != 200) {
            String said = new String(answer.body(), StandardCharsets.UTF_8);
            throw new IOException("it answered " + answer.statusCode() + " " + said.substring(0, Math.min(200, said.length())));
        }
        return answer.body();
    }

    /** The query of the part that follows; only a query, so that no answer leads to another address. */
    private static Optional<String> next(HttpResponse<byte[]> answer) {
        return answer.headers().firstValue("Link").map(NEXT::matcher).filter(Matcher::matches).map(found -> found.group(1));
    }
}
