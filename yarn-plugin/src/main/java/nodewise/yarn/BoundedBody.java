package nodewise.yarn;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/** Takes the body of an answer as long as it is no larger than it may be: whoever answers must not fill the heap of YARN. */
final class BoundedBody implements HttpResponse.BodySubscriber<byte[]> {
    private final int before;
    private final int most;
    private final ByteArrayOutputStream taken = new ByteArrayOutputStream();
    private final CompletableFuture<byte[]> body = new CompletableFuture<>();
    private Flow.Subscription subscription;

    private BoundedBody(int before, int most) {
        this.before = before;
        this.most = most;
    }

    /** At most `most` bytes with the `before` ones that came before; a body that says that it has more is not read at all. */
    static HttpResponse.BodyHandler<byte[]> handler(int before, int most) {
        return answer -> {
            BoundedBody found = new BoundedBody(before, most);
            if (answer.headers().firstValueAsLong("Content-Length").orElse(0) > most - before) {
                found.refuse();
            }
            return found;
        };
    }

    @Override
    public CompletionStage<byte[]> getBody() {
        return body;
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        subscription = given;
        if (body.isDone()) {
            subscription.cancel();
        } else {
            subscription.request(Long.MAX_VALUE);
        }
    }

    @Override
    public void onNext(List<ByteBuffer> parts) {
        for (ByteBuffer part : parts) {
            if (body.isDone()) {
                return;
            }
            if (part.remaining() > most - before - taken.size()) {
                subscription.cancel(); // closes the connection
                refuse();
                return;
            }
            byte[] bytes = new byte[part.remaining()];
            part.get(bytes);
            taken.write(bytes, 0, bytes.length);
        }
    }

    @Override
    public void onError(Throwable error) {
        body.completeExceptionally(error);
    }

    @Override
    public void onComplete() {
        body.complete(taken.toByteArray());
    }

    private void refuse() {
        body.completeExceptionally(new IOException("its answer has more than " + most + " bytes"));
    }
}
