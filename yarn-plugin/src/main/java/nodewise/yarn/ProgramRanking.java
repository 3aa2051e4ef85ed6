package nodewise.yarn;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import nodewise.yarn.Question.Known;
import nodewise.yarn.Settings.Judgement;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;

/** One program's ranking of each partition: one thread makes it, any number of others read it. */
final class ProgramRanking {
    private static final long LONGEST_WAIT = 2_000_000_000L;
    final String name;
    private final long begun = System.nanoTime();
    private final Health health;
    private final Placed placed = new Placed();
    private final Map<String, Ranking<SchedulerNode>> rankings = new ConcurrentHashMap<>();
    private volatile boolean tried;
    private volatile String complaint = "";
    /** When an application asked last (System.nanoTime). */
    volatile long asked = begun;

    /** Of a program whose values come as answers to this question. */
    ProgramRanking(String name, Question question) {
        this.name = name;
        health = Health.register(bean(), question, () -> complaint);
    }

    /** Whether its first values are still on their way: a moment's wait lets its first container go by them, too. */
    boolean isComing() {
        return !tried && System.nanoTime() - begun < LONGEST_WAIT;
    }

    /** The nodes from best to worst as of now; null without values. */
    Iterator<SchedulerNode> walk(String partition) {
        Ranking<SchedulerNode> ranking = rankings.get(partition);
        return ranking == null ? null : ranking.walk();
    }

    /** Of all nodes, by partition; nothing is ordered by settings or values that cannot be used. */
    void rank(Optional<Known> known, Map<String, List<SchedulerNode>> nodes) {
        try {
            rankings.keySet().retainAll(nodes.keySet());
            health.seats().keySet().retainAll(nodes.keySet());
            Optional<Judgement> judgement = known.flatMap(found -> found.settings().programs().judgement(name));
            for (Map.Entry<String, List<SchedulerNode>> one : nodes.entrySet()) {
                long now = System.nanoTime();
                Ranking<SchedulerNode> ranking = judgement.map(found -> ranking(found, known.get().values(), one.getValue(), now)).orElse(null);
                put(one.getKey(), ranking);
                health.note(one.getKey(), ranking, System.nanoTime() - now);
            }
            complaint = "";
        } catch (RuntimeException | Error error) { // of this program alone
            forget();
            complaint = "its nodes are ordered as its queue says: " + error;
        }
        tried = true;
    }

    /** No node is ordered until the next time. */
    void forget() {
        rankings.clear();
        health.seats().clear();
    }

    void end() {
        forget();
        Health.unregister(bean());
    }

    private Ranking<SchedulerNode> ranking(Judgement judgement, Values values, Collection<SchedulerNode> nodes, long now) {
        List<String> hosts = new ArrayList<>();
        nodes.forEach(node -> hosts.add(node.getNodeID().getHost()));
        return Score.hasValues(judgement, values, hosts) ? Ranking.of(judgement, values, nodes, placed, now) : null;
    }

    private void put(String partition, Ranking<SchedulerNode> ranking) {
        if (ranking == null) {
            rankings.remove(partition);
        } else {
            rankings.put(partition, ranking);
        }
    }

    private String bean() {
        return "program." + name;
    }
}
