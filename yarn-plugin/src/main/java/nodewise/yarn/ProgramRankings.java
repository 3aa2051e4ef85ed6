package nodewise.yarn;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import nodewise.yarn.Keys.WrongSetting;
import nodewise.yarn.Settings.Judgement;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The rankings of the programs whose applications asked lately. One thread asks for the values of all of them at once, and
 * ranks; the scheduler only looks up what is there.
 */
final class ProgramRankings {
    private static final Logger LOG = LoggerFactory.getLogger(ProgramRankings.class);
    /** Programs ranked at once: each costs a ranking of all nodes, and its values. */
    static final int MOST = 32;
    /** A program that no application asked for so long is dropped. */
    static final Duration KEPT = Duration.ofMinutes(10);
    private static final long INTERVAL_MS = 500;
    private static ProgramRankings shared;
    private static volatile RMContext context;

    private final Watch watch;
    private final Supplier<Map<String, List<SchedulerNode>>> nodes;
    final Question question = new Question(false, "programs have the order of their queue");
    private final Map<String, ProgramRanking> rankings = new ConcurrentHashMap<>();
    private final Object bell = new Object();
    private boolean rung;
    private Settings asked;
    private Set<String> names = Set.of();
    private long askedAt;

    /** `nodes` gives all nodes by partition. */
    ProgramRankings(Watch watch, Supplier<Map<String, List<SchedulerNode>>> nodes) {
        this.watch = watch;
        this.nodes = nodes;
    }

    /** Those of this process, with the nodes of the ResourceManager whose context this is. */
    static synchronized ProgramRankings shared(RMContext given) {
        boolean isNew = context != given; // one that becomes active again has new nodes
        context = given;
        if (shared == null) {
            shared = new ProgramRankings(Watch.shared(), () -> nodes(context));
            Thread thread = new Thread(shared::run, "nodewise-programs");
            thread.setDaemon(true); // the ResourceManager need not wait for it to end
            thread.start();
        } else if (isNew) {
            shared.rankings.values().forEach(ProgramRanking::forget);
        }
        return shared;
    }

    /** The one of a program, from now on at the latest; null when the settings do not know it, or there are too many. */
    ProgramRanking of(String name) {
        ProgramRanking found = rankings.get(name);
        if (found == null && watch.settings.programs().judges(name)) {
            found = begin(name);
        }
        if (found != null) {
            found.asked = System.nanoTime();
        }
        return found;
    }

    private synchronized ProgramRanking begin(String name) {
        if (rankings.size() >= MOST && !rankings.containsKey(name)) {
            return null;
        }
        ProgramRanking found = rankings.computeIfAbsent(name, absent -> new ProgramRanking(name, question));
        ring();
        return found;
    }

    /** One turn: drop, ask if it is time, rank. */
    void turn() throws InterruptedException {
        Settings settings = watch.settings;
        drop(settings, System.nanoTime());
        List<ProgramRanking> all = List.copyOf(rankings.values());
        if (!all.isEmpty()) {
            ask(settings, all);
            Map<String, List<SchedulerNode>> found = nodes.get();
            all.forEach(one -> one.rank(question.known(settings), found));
        }
    }

    /** Those that nobody asked for lately, and those that the settings know no more. */
    synchronized void drop(Settings settings, long now) {
        for (ProgramRanking one : rankings.values()) {
            if (now - one.asked > KEPT.toNanos() || !settings.programs().judges(one.name)) {
                rankings.remove(one.name);
                one.end();
            }
        }
    }

    private void ask(Settings settings, List<ProgramRanking> all) throws InterruptedException {
        Set<String> wanted = new TreeSet<>();
        all.forEach(one -> wanted.addAll(names(settings, one.name)));
        boolean isDue = System.nanoTime() - askedAt >= settings.interval().toNanos();
        if (!wanted.isEmpty() && (isDue || settings != asked || !wanted.equals(names))) {
            asked = settings;
            names = wanted;
            askedAt = System.nanoTime();
            question.poll(settings, wanted);
        }
    }

    private static Set<String> names(Settings settings, String program) {
        try {
            return settings.programs().judgement(program).stream().flatMap(Judgement::names)
                .collect(Collectors.toSet());
        } catch (WrongSetting error) { // told when it is ranked
            return Set.of();
        }
    }

    private void run() {
        String told = "";
        try {
            while (true) {
                try {
                    turn();
                } catch (RuntimeException | Error error) {
                    rankings.values().forEach(ProgramRanking::forget);
                    if (!told.equals(error.toString())) {
                        LOG.warn("programs have the order of their queue", error);
                    }
                    told = error.toString();
                }
                rest();
            }
        } catch (InterruptedException error) {
            LOG.warn("programs are not ranked any more: {}", error.toString());
        }
    }

    private void ring() {
        synchronized (bell) {
            rung = true;
            bell.notifyAll();
        }
    }

    private void rest() throws InterruptedException {
        synchronized (bell) {
            if (!rung) {
                bell.wait(INTERVAL_MS);
            }
            rung = false;
        }
    }

    /** All nodes by partition, as YARN's own policies are given them. */
    private static Map<String, List<SchedulerNode>> nodes(RMContext context) {
        Set<String> partitions = new TreeSet<>(context.getNodeLabelManager().getClusterNodeLabelNames());
        partitions.add("");
        Map<String, List<SchedulerNode>> found = new TreeMap<>();
        AbstractYarnScheduler<?, ?> scheduler = (AbstractYarnScheduler<?, ?>) context.getScheduler();
        for (String partition : partitions) {
            List<SchedulerNode> all = List.copyOf(scheduler.getNodeTracker().getNodesPerPartition(partition));
            if (!all.isEmpty()) {
                found.put(partition, all);
            }
        }
        return found;
    }
}
