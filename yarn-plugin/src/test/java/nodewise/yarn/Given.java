package nodewise.yarn;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.resourcemanager.MockNodes;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;

/** What the tests begin with. */
final class Given {
    private Given() {}

    /** Settings of a service that nobody asks, and of what `lines` say. */
    static Settings settings(String... lines) {
        return Settings.of(keys(lines));
    }

    static Keys keys(String... lines) {
        Properties properties = new Properties();
        properties.setProperty("service.url", "http://127.0.0.1:9");
        for (String line : lines) {
            String[] both = line.split("=", 2);
            properties.setProperty(both[0].trim(), both[1].trim());
        }
        return new Keys(properties);
    }

    /** A node of 4 cores and 8 GB. */
    static SchedulerNode node(String host) {
        return new FiCaSchedulerNode(MockNodes.newNodeInfo(0, Resource.newInstance(8192, 4), 1, host, 1234), false);
    }

    static void place(SchedulerNode node, int memoryMb, int vcores) {
        node.deductUnallocatedResource(Resource.newInstance(memoryMb, vcores));
    }

    /** As the service answers; `age` in seconds, of all. */
    static byte[] answer(String name, Map<String, Double> values, double age, String state) {
        List<String> all = new ArrayList<>();
        values.forEach((node, value) -> all.add(String.format(
            "{\"node_name\": \"%s\", \"data_value\": \"%s\", \"age\": %s, \"ttl\": 15, \"state\": \"%s\"}", node, value, age, state)));
        String text = "{\"data\": [{\"data_name\": \"%s\", \"unit\": \"x\", \"time\": 1.0, \"values\": [%s]}]}";
        return String.format(text, name, String.join(",", all)).getBytes(StandardCharsets.UTF_8);
    }

    static List<String> hosts(Iterator<? extends SchedulerNode> nodes) {
        List<String> hosts = new ArrayList<>();
        nodes.forEachRemaining(node -> hosts.add(node.getNodeID().getHost()));
        return hosts;
    }
}
