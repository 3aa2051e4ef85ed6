package nodewise.yarn.load;

import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/** What one trial runs with: nodes, whether a thread of the scheduler places or heartbeats do, and the policy. */
record Setup(int nodes, boolean asynchronous, Class<?> policy) {
    static final List<String> QUEUES = List.of("a", "b", "c", "d", "e", "f", "g", "h");
    static final int SLOTS = 16;
    static final Resource CONTAINER = Resource.newInstance(2048, 1);
    static final Resource NODE = Resource.newInstance(SLOTS * 2048, SLOTS);
    private static final String SCHEDULER = "yarn.scheduler.capacity.";
    private static final String SORTING = SCHEDULER + "multi-node-sorting.policy";

    /** Half of what the nodes can hold, so that there are full ones and there is always room. */
    int containersOfJob() {
        return nodes * SLOTS / 2 / QUEUES.size();
    }

    /** The site files of a cluster with this policy. */
    Configuration site() {
        Configuration site = new YarnConfiguration();
        for (String service : List.of("", ".admin", ".scheduler", ".resource-tracker", ".webapp")) {
            site.set("yarn.resourcemanager" + service + ".address", "127.0.0.1:0");
        }
        for (String service : List.of("client", "admin.client", "scheduler.client", "resource-tracker.client")) {
            site.setInt("yarn.resourcemanager." + service + ".thread-count", 1);
        }
        // It would place nothing for 10 s.
        site.setBoolean("yarn.resourcemanager.work-preserving-recovery.enabled", false);
        site.set(SCHEDULER + "resource-calculator", "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator");
        site.setBoolean(SCHEDULER + "schedule-asynchronously.enable", asynchronous);
        site.setBoolean(SCHEDULER + "multi-node-placement-enabled", true);
        site.set(SORTING + ".names", "tried");
        site.set(SORTING, "tried");
        site.set(SORTING + ".tried.class", policy.getName());
        site.setInt(SORTING + ".tried.sorting-interval.ms", 500);
        site.setStrings(SCHEDULER + "root.queues", QUEUES.toArray(String[]::new));
        for (String queue : QUEUES) {
            site.setFloat(SCHEDULER + "root." + queue + ".capacity", 100f / QUEUES.size());
            site.setFloat(SCHEDULER + "root." + queue + ".maximum-capacity", 100);
            site.setInt(SCHEDULER + "root." + queue + ".user-limit-factor", QUEUES.size());
        }
        return site;
    }
}
