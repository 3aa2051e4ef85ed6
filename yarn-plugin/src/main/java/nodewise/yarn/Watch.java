package nodewise.yarn;

import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import nodewise.yarn.Keys.WrongSetting;
import nodewise.yarn.Question.Known;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Asks the information service again and again in a thread of its own, and reads the settings again when they change. */
final class Watch {
    private static final Logger LOG = LoggerFactory.getLogger(Watch.class);
    private static Watch shared;

    private final Path file;
    private FileTime changed;
    final Question question = new Question(true, "nodes are ordered as stock YARN does");
    volatile Settings settings;
    /** What is wrong with the settings; empty when nothing is. */
    volatile String refused = "";

    /** Reads the settings; WrongSetting or IOException when they cannot be used. */
    Watch(Path file) throws IOException {
        this.file = file;
        changed = Files.getLastModifiedTime(file);
        settings = Settings.read(file);
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
        return question.known(settings);
    }

    /** One turn. */
    void poll() throws InterruptedException {
        reload();
        if (!settings.judgements().isEmpty()) {
            question.poll(settings, settings.names());
        }
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

    /** Settings that cannot be used leave those before. */
    private void reload() {
        try {
            FileTime now = Files.getLastModifiedTime(file);
            if (!now.equals(changed)) {
                changed = now;
                Settings found = Settings.read(file);
                settings.judgements().keySet().forEach(found::judgement);
                settings = found;
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
}
