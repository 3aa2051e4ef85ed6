package nodewise.yarn;

import java.util.Collection;
import java.util.Iterator;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.MultiNodeLookupPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.ResourceUsageMultiNodeLookupPolicy;

/**
 * Orders nodes by measured values. The scheduler never waits: what it calls reads a ranking that the sorting thread has
 * made of what a third thread has fetched. Without values the order is stock YARN's.
 */
public abstract class MeasuredOrder<N extends SchedulerNode> implements MultiNodeLookupPolicy<N> {
    private final String name;
    private final Watch watch;
    private final Health health;
    private final MultiNodeLookupPolicy<N> stock = new ResourceUsageMultiNodeLookupPolicy<>();
    private final Map<String, Ranking<N>> rankings = new ConcurrentHashMap<>();
    private final Placed placed = new Placed();

    /** `name` is that of its part of the settings. WrongSetting when there is none. */
    protected MeasuredOrder(String name) {
        this(name, Watch.shared());
    }

    MeasuredOrder(String name, Watch watch) {
        this.name = name;
        this.watch = watch;
        watch.settings.judgement(name);
        health = Health.register(name, watch.question, () -> watch.refused);
    }

    @Override
    public Iterator<N> getPreferredNodeIterator(Collection<N> nodes, String partition) {
        Ranking<N> ranking = rankings.get(partition);
        return ranking == null ? stock.getPreferredNodeIterator(nodes, partition) : ranking.walk();
    }

    @Override
    public synchronized void addAndRefreshNodesSet(Collection<N> nodes, String partition) {
        long begun = System.nanoTime();
        Optional<Ranking<N>> ranking = watch.known()
            .map(known -> Ranking.of(known.settings().judgement(name), known.values(), nodes, placed, begun));
        ranking.ifPresentOrElse(found -> rankings.put(partition, found), () -> {
            stock.addAndRefreshNodesSet(nodes, partition);
            rankings.remove(partition);
        });
        health.note(partition, ranking.orElse(null), System.nanoTime() - begun);
    }

    @Override
    public Set<N> getNodesPerPartition(String partition) {
        Ranking<N> ranking = rankings.get(partition);
        return ranking == null ? stock.getNodesPerPartition(partition)
            : ranking.seats.stream().map(Seat::node).collect(Collectors.toSet());
    }
}
