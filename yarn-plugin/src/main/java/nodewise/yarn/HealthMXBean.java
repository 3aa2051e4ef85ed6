package nodewise.yarn;

/** What an operator sees of a policy in JMX, and on the ResourceManager's page /jmx. */
public interface HealthMXBean {
    /** Milliseconds since the service last confirmed the values; -1 when there are none. */
    long getSnapshotAgeMillis();
    long getPolls();
    long getFailures();
    /** What is wrong now; empty when nothing is. */
    String getComplaint();
    /** Whether nodes are ordered as stock YARN does, because there are no values. */
    boolean isStockOrder();
    /** Nodes that lack a fresh value. */
    int getNodesWithoutValue();
    /** Microseconds that the last ordering took. */
    long getRefreshMicros();
    /** The first nodes of the order, with their scores. */
    String[] getFirst();
}
