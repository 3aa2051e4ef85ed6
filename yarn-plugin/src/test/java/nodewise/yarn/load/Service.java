package nodewise.yarn.load;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * Answers as the information service does. Each node reports every fifth second, so each answer differs from the one
 * before in a fifth of the nodes.
 */
final class Service {
    static final List<String> NAMES = List.of("cpu_free_ratio", "load_1m", "network_receive_ratio");
    private static final int INTERVAL = 5;
    private final Random random = new Random(7);
    private final double[][] values;
    private final long[] reported;
    private int answers;
    private int port;
    private HttpServer server;

    Service(int nodes) {
        values = new double[NAMES.size()][nodes];
        reported = new long[nodes];
        for (int node = 0; node < nodes; node++) {
            report(node);
        }
    }

    /** The settings of a policy that uses every value. */
    String settings() {
        return String.join("\n", "service.url = http://127.0.0.1:" + port,
            "first.score = cpu_free_ratio higher 0..1 weight 2; load_1m lower 0..1;"
                + " network_receive_ratio lower 0..1 missing neutral",
            "first.filter = cpu_free_ratio >= 0.1");
    }

    /** Always at the same port. */
    void open() throws IOException {
        server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        port = server.getAddress().getPort();
        server.createContext("/api/v1/data", this::answer);
        server.start();
    }

    void close() {
        server.stop(0);
    }

    private synchronized void answer(HttpExchange exchange) throws IOException {
        answers++;
        for (int node = answers % INTERVAL; node < reported.length; node += INTERVAL) {
            report(node);
        }
        byte[] body = body().getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("ETag", "\"" + answers + "\"");
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    private void report(int node) {
        reported[node] = System.nanoTime();
        for (double[] one : values) {
            one[node] = random.nextDouble();
        }
    }

    private String body() {
        StringBuilder body = new StringBuilder("{\"data\": [");
        for (int name = 0; name < values.length; name++) {
            body.append(name == 0 ? "" : ", ");
            body.append("{\"data_name\": \"").append(NAMES.get(name)).append("\", \"values\": [");
            for (int node = 0; node < reported.length; node++) {
                body.append(node == 0 ? "" : ", ").append(String.format(Locale.ROOT,
                    "{\"node_name\": \"%s\", \"data_value\": \"%.4f\", \"age\": %.3f, "
                        + "\"ttl\": 15, \"state\": \"fresh\"}", Manager.host(node), values[name][node],
                    (System.nanoTime() - reported[node]) / 1e9));
            }
            body.append("]}");
        }
        return body.append("]}").toString();
    }
}
