package nodewise.yarn;

import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.WeakHashMap;
import org.apache.hadoop.yarn.api.records.NodeId;

/**
 * How much of each node was given away at which moment. A value tells nothing of what came after it was measured, so all
 * nodes would be filled by the same old value; what has been placed since counts against a node until the next one.
 */
final class Placed {
    /** Values older than this count as this old; so much is remembered. */
    private static final long LONGEST = 300_000_000_000L;
    private final Map<NodeId, NavigableMap<Long, Double>> shares = new WeakHashMap<>(); // nodes come and go

    /** The share of the node that was given away when its value was true, now that it is `share`. */
    double whenTrue(NodeId node, long at, double share, long now) {
        NavigableMap<Long, Double> known = shares.computeIfAbsent(node, name -> new TreeMap<>());
        if (known.isEmpty() || known.lastEntry().getValue() != share) {
            known.put(now, share);
        }
        Long from = known.floorKey(Math.max(at, now - LONGEST));
        known.headMap(from == null ? known.firstKey() : from).clear();
        return known.firstEntry().getValue();
    }
}
