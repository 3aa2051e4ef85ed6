package nodewise.yarn;

import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;

/** The order by what the settings say below `second.`: YARN tells policies apart by their class. */
public final class SecondOrder<N extends SchedulerNode> extends MeasuredOrder<N> {
    public SecondOrder() {
        super("second");
    }
}
