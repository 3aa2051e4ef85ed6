package nodewise.yarn;

import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import nodewise.yarn.Keys.WrongSetting;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Asks the information service again and again in a thread of its own, and reads the settings again when they change. */
final class Watch {
    private static final Logger LOG = LoggerFactory.getLogger(Watch.class);
    /** Bytes of an answer with all its parts; those of 10,000 nodes have about 1.5 MB for each name. */
    static final int LARGEST = 32 << 20;
    /** Parts of an answer; the service makes them of about 8 MiB. */
    static final int MOST_PARTS = 64;
    private static final Pattern NEXT = Pattern.compile("<(\\?[^>]+)>; rel=\"next\"");
    private static Watch shared;

    private final Path file;
    private FileTime changed;
    private HttpClient client;
    private String etag;
    private volatile Known known;
    volatile Settings settings;
    volatile long polls;
    volatile long failures;
    /** What is wrong with the settings, and with the service; empty when nothing is. */
    volatile String refused = "";
    volatile String failed = "";

    /** What the service said when it was asked by these settings, and when it last said that this still holds. */
    record Known(Settings settings, Values values, long confirmed) {}

    /** Reads the settings; WrongSetting or IOException when they cannot be used. */
    Watch(Path file) throws IOException {
        this.file = file;
        changed = Files.getLastModifiedTime(file);
        take(Settings.read(file));
    }

    /** The one of this process, which reads the settings on the class path and polls from now on. */
    static synchronized Watch shared() {
        if (shared == null) {
            URL url = Thread.currentThread().getContextClassLoader().getResource(Settings.FILE);
            if (url == null || !url.getProtocol().equals("file")) {
                throw new WrongSetting("no such file", "is on the class path: put it beside capacity-scheduler.xml");
            }
            try {
                shared = new Watch(Path.of(URI.create(url.toString())));
            } catch (IOException error) {
                throw new WrongSetting(url.getPath(), "cannot be read: " + error);
            }
            Thread thread = new Thread(shared::run, "nodewise-watch");
            thread.setDaemon(true); // the ResourceManager need not wait for it to end
            thread.start();
        }
        return shared;
    }

    /** Empty when the service is down, slow, or talks nonsense; else confirmed some intervals ago at most. */
    Optional<Known> known() {
        long longest = 3 * settings.interval().toNanos() + settings.timeout().toNanos();
        return Optional.ofNullable(known).filter(found -> System.nanoTime() - found.confirmed() <= longest);
    }

    /** Milliseconds since the service last confirmed what is known; -1 when nothing is. */
    long age() {
        Known found = known;
        return found == null ? -1 : (System.nanoTime() - found.confirmed()) / 1_000_000;
    }

    /** One turn. */
    void poll() throws InterruptedException {
        reload();
        polls++;
        String complaint = "";
        try {
            ask();
        } catch (IOException | ExecutionException | TimeoutException | RuntimeException | Error error) { // an Error would end YARN
            known = null;
            etag = null;
            failures++;
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            complaint = settings.url() + " gives no values, so nodes are ordered as stock YARN does: " + cause;
        }
        if (failed.isEmpty() != complaint.isEmpty()) { // once, however often it fails
            LOG.warn(complaint.isEmpty() ? settings.url() + " gives values again" : complaint);
        }
        failed = complaint;
    }

    private void run() {
        try {
            while (true) {
                poll();
                TimeUnit.NANOSECONDS.sleep(settings.interval().toNanos());
            }
        } catch (InterruptedException error) {
            LOG.warn("the values are not asked for any more: {}", error.toString());
        }
    }

    /** A long answer comes in parts, each of which names the query of the next. */
    private void ask() throws IOException, InterruptedException, ExecutionException, TimeoutException {
        long deadline = System.nanoTime() + settings.timeout().toNanos();
        Values.Parts parts = new Values.Parts();
        HttpResponse<byte[]> first = send(query(), etag, 0, deadline);
        long now = System.nanoTime();
        if (first.statusCode() == 304 && known != null) {
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
        known = new Known(settings, parts.values(settings.names()), now);
        etag = first.headers().firstValue("ETag").orElse(null); // it is of all parts
    }

    private String query() {
        return "?" + settings.names().stream().map(name -> "name=" + name.replace(":", "%3A")).collect(Collectors.joining("&"));
    }

    /** What is answered to a query until `deadline`, at most LARGEST bytes with the `before` ones of earlier parts. */
    private HttpResponse<byte[]> send(String query, String tag, int before, long deadline)
            throws IOException, InterruptedException, ExecutionException, TimeoutException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(settings.url() + "/api/v1/data" + query));
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

    /** Settings that cannot be used leave those before. */
    private void reload() {
        try {
            FileTime now = Files.getLastModifiedTime(file);
            if (!now.equals(changed)) {
                changed = now;
                Settings found = Settings.read(file);
                settings.judgements().keySet().forEach(found::judgement);
                take(found);
                refused = "";
                LOG.info("{} was read again", file);
            }
        } catch (IOException | RuntimeException error) {
            String complaint = "the settings stay as they were: " + error;
            if (!complaint.equals(refused)) {
                LOG.warn(complaint);
            }
            refused = complaint;
            changed = null; // so that they are tried again
        }
    }

    private void take(Settings found) {
        client = HttpClient.newBuilder().proxy(HttpClient.Builder.NO_PROXY).connectTimeout(found.timeout()).build();
        settings = found;
        etag = null;
    }
}
