package nodewise.yarn;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** A watch of a server that answers as it is told. */
abstract class WatchCase {
    @TempDir protected Path folder;
    protected HttpServer server;
    protected Path file;
    protected Watch watch;
    protected volatile int status = 200;
    protected volatile byte[] body = Given.answer("free", Map.of("a", 0.25), 1.0, "fresh");
    protected volatile long pause;
    protected final List<String> asked = new ArrayList<>();

    @BeforeEach
    final void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", this::answer);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        file = folder.resolve(Settings.FILE);
        write("first.score = free higher 0..1");
        watch = new Watch(file);
    }

    @AfterEach
    final void stop() {
        server.stop(0);
    }

    protected void write(String line) throws IOException {
        String url = "service.url = http://127.0.0.1:" + server.getAddress().getPort();
        store(url + "\nservice.timeout-ms = 20000\nservice.poll-interval-ms = 100\n" + line + "\n");
    }

    /** Change the settings, and the time of their file with them. */
    protected void replace(String part, String by) throws IOException {
        store(Files.readString(file).replace(part, by));
    }

    private void store(String settings) throws IOException {
        Files.writeString(file, settings);
        Files.setLastModifiedTime(file, FileTime.fromMillis(System.nanoTime() / 1000));
    }

    /** From the next turn on, wait no more than 300 ms for an answer. */
    protected void hurry() throws IOException {
        replace("20000", "300");
    }

    /** From now on, answer in another way. */
    protected void answerBy(HttpHandler handler) {
        server.removeContext("/");
        server.createContext("/", handler);
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

    protected boolean knows() {
        return watch.known().isPresent();
    }
}
