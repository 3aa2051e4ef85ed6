package nodewise.yarn.load;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import nodewise.yarn.FirstOrder;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.ResourceUsageMultiNodeLookupPolicy;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;

/** Measures the scheduler with the plug-in and with the stock policy in turns: FOLDER NODES WARM_UPS ROUNDS SECONDS. */
public final class SchedulingLoad {
    private final int nodes;
    private final double seconds;
    private final Service service;
    private final List<Line> lines = new ArrayList<>();

    /** One trial; `round` is negative while the JVM warms up. */
    record Line(int round, boolean asynchronous, boolean plugin, Trial.Found found) {}

    private SchedulingLoad(int nodes, double seconds) {
        this.nodes = nodes;
        this.seconds = seconds;
        service = new Service(nodes);
    }

    /** Writes every trial as JSON to found.json in the folder. */
    public static void main(String[] words) throws Exception {
        Logger.getRootLogger().setLevel(Level.ERROR); // a line for each container would be most of the work
        SchedulingLoad load = new SchedulingLoad(Integer.parseInt(words[1]), Double.parseDouble(words[4]));
        load.configure(Path.of(words[0]));
        for (int round = -Integer.parseInt(words[2]); round < Integer.parseInt(words[3]); round++) {
            load.pair(round, false);
            load.pair(round, true);
        }
        new ObjectMapper().writeValue(Path.of(words[0], "found.json").toFile(), load.lines);
        System.exit(0); // the HTTP client and parts of the ResourceManager leave threads
    }

    /** The plug-in reads its settings where the class path has them. */
    private void configure(Path folder) throws IOException {
        service.open();
        service.close();
        Files.writeString(folder.resolve("nodewise-policy.properties"), service.settings());
        ClassLoader parent = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(new URLClassLoader(new URL[] {folder.toUri().toURL()}, parent));
    }

    /** One trial of each policy; who begins changes every round. */
    private void pair(int round, boolean asynchronous) throws Exception {
        for (boolean plugin : round % 2 == 0 ? new boolean[] {true, false} : new boolean[] {false, true}) {
            System.err.printf("round %d: %s, %s%n",
                round + 1, asynchronous ? "threads" : "heartbeats", plugin ? "plug-in" : "stock");
            Class<?> policy = plugin ? FirstOrder.class : ResourceUsageMultiNodeLookupPolicy.class;
            if (plugin) { // stock YARN asks no service
                service.open();
            }
            try {
                Setup setup = new Setup(nodes, asynchronous, policy);
                lines.add(new Line(round, asynchronous, plugin, Trial.run(setup, seconds)));
            } finally {
                if (plugin) {
                    service.close();
                }
            }
        }
    }
}
