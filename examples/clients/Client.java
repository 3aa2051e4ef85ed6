import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Writes a value and reads it back: java Client.java URL TOKEN_FILE NAME NODE VALUE. NAME must be registered.
 *
 * <p>An https service is trusted by the authority in the file that NODEWISE_CA_FILE names.
 */
public final class Client {
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final HttpClient http;
    private final String url;
    private final String token;

    private Client(String url, String token) throws IOException, GeneralSecurityException {
        HttpClient.Builder builder =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(PATIENCE);
        String authority = System.getenv("NODEWISE_CA_FILE");
        if (authority != null && !authority.isEmpty()) {
            builder.sslContext(trusting(Path.of(authority)));
        }
        this.http = builder.build();
        this.url = url;
        this.token = token;
    }

    public static void main(String[] words) throws Exception {
        if (words.length != 5) {
            System.err.println("usage: java Client.java URL TOKEN_FILE NAME NODE VALUE");
            System.exit(2);
        }
        String path = "/api/v1/data/" + words[2] + "/" + words[3];
        try {
            Client client = new Client(words[0], Files.readString(Path.of(words[1])).strip());
            client.call("PUT", path, BodyPublishers.ofString("{\"data_value\": " + quoted(words[4]) + "}"));
            System.out.println(client.call("GET", path, BodyPublishers.noBody()));
        } catch (NoSuchFileException missing) {
            System.err.println("there is no file " + missing.getMessage());
            System.exit(1);
        } catch (ConnectException away) {
            System.err.println("no service answers at " + words[0]);
            System.exit(1);
        } catch (IOException | IllegalArgumentException | GeneralSecurityException refused) {
            System.err.println(refused.getMessage());
            System.exit(1);
        }
    }

    /** The body of the answer; IOException with what the service said when it refused the call. */
    private String call(String method, String path, BodyPublisher body) throws IOException, InterruptedException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(url + path))
                        .timeout(PATIENCE)
                        .header("Authorization", "Bearer " + token)
                        .header("Content-Type", "application/json")
                        .method(method, body)
                        .build();
        HttpResponse<String> answer = http.send(request, BodyHandlers.ofString());
        if (answer.statusCode() >= 400) {
            throw new IOException(answer.statusCode() + ": " + answer.body());
        }
        return answer.body();
    }

    /** A text as JSON writes it. */
    private static String quoted(String text) {
        StringBuilder made = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') {
                made.append('\\').append(each);
            } else if (each < ' ') {
                made.append(String.format("\\u%04x", (int) each));
            } else {
                made.append(each);
            }
        }
        return made.append('"').toString();
    }

    /** What trusts the authorities of a PEM file, and nobody else. */
    private static SSLContext trusting(Path file) throws IOException, GeneralSecurityException {
        KeyStore known = KeyStore.getInstance(KeyStore.getDefaultType());
        known.load(null, null);
        try (InputStream pem = Files.newInputStream(file)) {
            int number = 0;
            for (Certificate authority : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
                known.setCertificateEntry("authority-" + number++, authority);
            }
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(known);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }
}
