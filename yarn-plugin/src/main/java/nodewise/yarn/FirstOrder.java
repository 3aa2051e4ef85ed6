package nodewise.yarn;

import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;

/** The order by what the settings say below `first.`: YARN tells policies apart by their class. */
public final class FirstOrder<N extends SchedulerNode> extends MeasuredOrder<N> {
    public FirstOrder() {
        super("first");
    }
}
