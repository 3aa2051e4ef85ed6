package nodewise.yarn;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import javax.management.ObjectName;
import org.apache.hadoop.metrics2.util.MBeans;

/** The state of one order; `seats` are those of each partition in their order, empty where the order is stock's. */
record Health(Question question, Supplier<String> refused, Map<String, List<? extends Seat<?>>> seats, AtomicLong refreshNanos)
        implements HealthMXBean {
    private static final int SHOWN = 20;
    private static final Map<String, ObjectName> REGISTERED = new HashMap<>();

    /** In place of the one before: a ResourceManager that becomes active again makes its policies anew. */
    static synchronized Health register(String name, Question question, Supplier<String> refused) {
        Health health = new Health(question, refused, new ConcurrentHashMap<>(), new AtomicLong());
        unregister(name);
        REGISTERED.put(name, MBeans.register("ResourceManager", "NodewiseOrder-" + name, health));
        return health;
    }

    static synchronized void unregister(String name) {
        MBeans.unregister(REGISTERED.remove(name));
    }

    /** What was ordered of a partition, in how long; null where it is not. */
    void note(String partition, Ranking<?> ranking, long nanos) {
        seats.put(partition, ranking == null ? List.of() : ranking.seats);
        refreshNanos.set(nanos);
    }

    @Override public long getSnapshotAgeMillis() { return question.age(); }
    @Override public long getPolls() { return question.polls; }
    @Override public long getFailures() { return question.failures; }
    @Override public String getComplaint() { return (refused.get() + " " + question.failed).trim(); }
    @Override public boolean isStockOrder() { return seats.values().stream().allMatch(List::isEmpty); }
    @Override public long getRefreshMicros() { return refreshNanos.get() / 1000; }

    @Override public int getNodesWithoutValue() {
        return (int) seats.values().stream().flatMap(List::stream).filter(seat -> seat.score().blind()).count();
    }

    @Override public String[] getFirst() {
        return seats.values().stream().flatMap(List::stream).limit(SHOWN).map(seat -> String.format(Locale.ROOT, "%s %.3f%s",
            seat.node().getNodeID(), seat.score().value(), seat.score().last() ? " last" : "")).toArray(String[]::new);
    }
}
