package nodewise.yarn;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** What the service knew at one moment; it never changes. */
final class Values {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Map<String, Map<String, Value>> byName;

    /** A number that was true at `at` (System.nanoTime), and whether the service calls it fresh. */
    record Value(double number, long at, boolean fresh) {}

    private Values(Map<String, Map<String, Value>> byName) {
        this.byName = byName;
    }

    /** Of the parts of an answer to GET /api/v1/data?name=..., one after the other: a name may stand in several. */
    static final class Parts {
        private final Map<String, Map<String, Value>> byName = new HashMap<>();

        /** Take one that came at `now`; IOException when it is not JSON. */
        void add(byte[] answer, long now) throws IOException {
            for (JsonNode one : JSON.readTree(answer).path("data")) {
                Map<String, Value> byNode = byName.computeIfAbsent(one.path("data_name").asText(), name -> new HashMap<>());
                for (JsonNode value : one.path("values")) {
                    Value found = value(value, now);
                    if (found != null) {
                        byNode.put(value.path("node_name").asText(), found);
                    }
                }
            }
        }

        /** What all of them say; IOException unless they are an answer with all of `names`. */
        Values values(Set<String> names) throws IOException {
            if (!byName.keySet().containsAll(names)) {
                throw new IOException("the answer has no values of one of " + names);
            }
            return new Values(byName);
        }
    }

    /** Of the node; null if it never had one that is a number. */
    Value get(String name, String node) {
        return byName.getOrDefault(name, Collections.emptyMap()).get(node);
    }

    private static Value value(JsonNode said, long now) {
        try {
            double number = Double.parseDouble(said.path("data_value").asText());
            double age = said.path("age").asDouble(Double.NaN);
            if (Double.isFinite(number) && age >= 0) {
                return new Value(number, now - (long) (age * 1e9), "fresh".equals(said.path("state").asText()));
            }
        } catch (NumberFormatException error) {
            // text is not a measure
        }
        return null;
    }
}
