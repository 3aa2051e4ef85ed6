package nodewise.yarn.load;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;

/** An application master that always wants more containers, anywhere, and gives back what is more than its share. */
final class Job {
    private static final int ASKED = 256;
    private final CapacityScheduler scheduler;
    private final ApplicationAttemptId attempt;
    private final int share;
    private final Random random;
    private final List<ContainerId> running = new ArrayList<>();

    Job(CapacityScheduler scheduler, ApplicationAttemptId attempt, int share) {
        this.scheduler = scheduler;
        this.share = share;
        this.attempt = attempt;
        random = new Random(attempt.getApplicationId().getId());
    }

    /** One call of the scheduler; whether all was placed that had been asked for, so that it may have been idle. */
    boolean turn() {
        List<ContainerId> ended = new ArrayList<>();
        while (running.size() > share) {
            ended.add(endOne());
        }
        ResourceRequest ask = ResourceRequest.newBuilder().priority(Priority.newInstance(1))
            .resourceName(ResourceRequest.ANY).capability(Setup.CONTAINER).numContainers(ASKED).build();
        List<Container> given = scheduler.allocate(
            attempt, List.of(ask), List.of(), ended, List.of(), List.of(), new ContainerUpdates()).getContainers();
        given.forEach(container -> running.add(container.getId()));
        return given.size() >= ASKED;
    }

    boolean hasItsShare() {
        return running.size() >= share;
    }

    /** Any of them, as containers end in no order. */
    private ContainerId endOne() {
        int place = random.nextInt(running.size());
        ContainerId last = running.remove(running.size() - 1);
        return place == running.size() ? last : running.set(place, last);
    }
}
