package nodewise.yarn.load;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import nodewise.yarn.FirstOrder;

/** A fresh ResourceManager, filled to half and then measured while containers come and go. */
final class Trial {
    private static final int BATCH = 64;
    private static final int REFRESHES = 50;
    private static final long SAMPLED_NANOS = 500_000_000;
    private final Setup setup;
    private final Manager manager;
    private final List<Job> jobs;
    private final List<Long> refreshesUnderLoad = new ArrayList<>();
    private long sampled;
    private long turns;
    private long idleTurns;
    private long schedulingNanos;
    private long schedulingCpuNanos;

    /**
     * What was found. The seconds are those of the scheduler: of its heartbeats, or of the clock where its thread runs
     * by itself; CPU seconds are those of its thread, or of the whole process.
     */
    record Found(long containers, double seconds, double cpuSeconds, double idleTurns, List<Long> refreshNanos,
                 List<Long> refreshNanosUnderLoad) {}

    private Trial(Setup setup, Manager manager, List<Job> jobs) {
        this.setup = setup;
        this.manager = manager;
        this.jobs = jobs;
    }

    static Found run(Setup setup, double seconds) throws Exception {
        Manager manager = Manager.start(setup);
        ScheduledExecutorService heart = Executors.newSingleThreadScheduledExecutor();
        try {
            if (setup.policy() == FirstOrder.class) {
                Manager.await(() -> !Health.isStockOrder(), "an order by values");
            } else {
                manager.refreshes(1);
            }
            if (setup.asynchronous()) { // every node within a second
                heart.scheduleAtFixedRate(() -> manager.heartbeats(setup.nodes() / 10), 0, 100, TimeUnit.MILLISECONDS);
            }
            return new Trial(setup, manager, manager.submit(setup)).measured(seconds);
        } finally {
            heart.shutdownNow();
            manager.stop();
        }
    }

    private Found measured(double seconds) throws InterruptedException {
        while (!jobs.stream().allMatch(Job::hasItsShare)) {
            step();
        }
        schedulingNanos = 0;
        schedulingCpuNanos = 0;
        turns = 0;
        idleTurns = 0;
        long before = manager.allocated();
        long begun = System.nanoTime();
        while (System.nanoTime() - begun < seconds * 1e9) {
            step();
            sample();
        }
        long containers = manager.allocated() - before;
        List<Long> refreshes = setup.asynchronous() ? List.of() : manager.refreshes(REFRESHES);
        return new Found(containers, schedulingNanos / 1e9, schedulingCpuNanos / 1e9, (double) idleTurns / turns,
            refreshes, refreshesUnderLoad);
    }

    /** A turn of every job, and the time in which the scheduler places what they ask for. */
    private void step() throws InterruptedException {
        long begun = System.nanoTime();
        long used = cpuNanos();
        if (setup.asynchronous()) {
            TimeUnit.MILLISECONDS.sleep(5);
            askAll();
        } else {
            manager.heartbeats(BATCH);
        }
        schedulingNanos += System.nanoTime() - begun;
        schedulingCpuNanos += cpuNanos() - used;
        if (!setup.asynchronous()) {
            askAll();
        }
    }

    private void askAll() {
        for (Job job : jobs) {
            turns++;
            idleTurns += job.turn() ? 1 : 0;
        }
    }

    private long cpuNanos() {
        return setup.asynchronous()
            ? ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime()
            : ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    /** Looks whether the plug-in does its work. */
    private void sample() {
        if (setup.policy() != FirstOrder.class || System.nanoTime() - sampled < SAMPLED_NANOS) {
            return;
        }
        sampled = System.nanoTime();
        if (Health.isStockOrder()) {
            throw new IllegalStateException("the plug-in fell back to the order of stock YARN");
        }
        refreshesUnderLoad.add(Health.refreshNanos());
    }
}
