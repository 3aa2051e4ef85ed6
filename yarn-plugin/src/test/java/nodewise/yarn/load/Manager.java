package nodewise.yarn.load;

import java.io.IOException;
import java.security.PrivilegedExceptionAction;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.api.records.NodeHealthStatus;
import org.apache.hadoop.yarn.server.api.records.NodeStatus;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.MultiNodeLookupPolicy;
import org.apache.hadoop.yarn.util.YarnVersionInfo;

/** A whole ResourceManager without web pages, with nodes that have registered and only say that they live. */
final class Manager extends ResourceManager {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private final List<RMNode> nodes = new ArrayList<>();
    private final Class<?> policy;
    private int turn;

    private Manager(Setup setup) {
        policy = setup.policy();
    }

    /** Started, all nodes known to its scheduler. */
    static Manager start(Setup setup) throws IOException, YarnException, InterruptedException {
        DefaultMetricsSystem.setMiniClusterMode(true); // else a second one in this process is refused
        QueueMetrics.clearQueueMetrics();
        Manager manager = new Manager(setup);
        manager.init(setup.site());
        manager.start();
        for (int i = 0; i < setup.nodes(); i++) {
            manager.register(NodeId.newInstance(host(i), 45454));
        }
        await(() -> manager.scheduler().getNumClusterNodes() == setup.nodes(), "all nodes");
        manager.nodes.addAll(manager.getRMContext().getRMNodes().values());
        return manager;
    }

    /** An address, as a name would be looked up. */
    static String host(int number) {
        return "127.1." + number / 250 + "." + (number % 250 + 1);
    }

    CapacityScheduler scheduler() {
        return (CapacityScheduler) getResourceScheduler();
    }

    long allocated() {
        return scheduler().getRootQueueMetrics().getAggregateAllocatedContainers();
    }

    /** The next nodes' heartbeats, as they reach the scheduler. */
    void heartbeats(int count) {
        for (int i = 0; i < count; i++) {
            scheduler().handle(new NodeUpdateSchedulerEvent(nodes.get(turn++ % nodes.size())));
        }
    }

    /** One application in each queue, whose application master runs elsewhere. */
    List<Job> submit(Setup setup) throws IOException, YarnException, InterruptedException {
        List<Job> jobs = new ArrayList<>();
        ContainerLaunchContext nothing =
            ContainerLaunchContext.newInstance(Map.of(), Map.of(), List.of(), Map.of(), null, Map.of());
        for (String queue : Setup.QUEUES) {
            ApplicationId id =
                getClientRMService().getNewApplication(GetNewApplicationRequest.newInstance()).getApplicationId();
            getClientRMService().submitApplication(SubmitApplicationRequest.newInstance(
                ApplicationSubmissionContext.newInstance(
                    id, "load-" + queue, queue, Priority.newInstance(0), nothing, true, false, 1, Setup.CONTAINER)));
            jobs.add(new Job(scheduler(), registered(getRMContext().getRMApps().get(id)), setup.containersOfJob()));
        }
        return jobs;
    }

    /** The attempt of an application, as its master registers it. */
    private ApplicationAttemptId registered(RMApp application) throws IOException, InterruptedException {
        await(() -> application.getCurrentAppAttempt() != null
            && application.getCurrentAppAttempt().getAppAttemptState() == RMAppAttemptState.LAUNCHED, "an attempt");
        RMAppAttempt attempt = application.getCurrentAppAttempt();
        UserGroupInformation master = UserGroupInformation.createRemoteUser(attempt.getAppAttemptId().toString());
        master.addTokenIdentifier(attempt.getAMRMToken().decodeIdentifier());
        master.doAs((PrivilegedExceptionAction<Object>) () -> getApplicationMasterService().registerApplicationMaster(
            RegisterApplicationMasterRequest.newInstance("127.0.0.1", 1, "")));
        await(() -> attempt.getAppAttemptState() == RMAppAttemptState.RUNNING, "a registered attempt");
        return attempt.getAppAttemptId();
    }

    /** Nanoseconds that each of so many orderings of all nodes takes, one after another. */
    List<Long> refreshes(int count) {
        MultiNodeLookupPolicy<SchedulerNode> found =
            getRMContext().getMultiNodeSortingManager().getMultiNodePolicy(policy.getName()).getMultiNodeLookupPolicy();
        Collection<SchedulerNode> all = new ArrayList<>();
        nodes.forEach(node -> all.add(scheduler().getSchedulerNode(node.getNodeID())));
        List<Long> nanos = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            long begun = System.nanoTime();
            found.addAndRefreshNodesSet(all, "");
            nanos.add(System.nanoTime() - begun);
        }
        return nanos;
    }

    static void await(BooleanSupplier condition, String what) throws InterruptedException {
        long begun = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - begun > PATIENCE.toNanos()) {
                throw new IllegalStateException(what + " did not come within " + PATIENCE.toSeconds() + " s");
            }
            Thread.sleep(10);
        }
    }

    private void register(NodeId node) throws IOException, YarnException {
        NodeStatus status = NodeStatus.newInstance(node, 0, List.of(), List.of(),
            NodeHealthStatus.newInstance(true, "", 0), null, null, null);
        getResourceTrackerService().registerNodeManager(RegisterNodeManagerRequest.newInstance(
            node, 8042, Setup.NODE, YarnVersionInfo.getVersion(), List.of(), List.of(), null, null, null, status));
    }

    @Override
    protected void startWepApp() {
        // nobody reads them
    }
}
