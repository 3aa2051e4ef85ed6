package nodewise.yarn.load;

import java.lang.management.ManagementFactory;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** What an operator sees of the plug-in in JMX. */
final class Health {
    private static final MBeanServer BEANS = ManagementFactory.getPlatformMBeanServer();

    private Health() {}

    static boolean isStockOrder() {
        return (Boolean) read("StockOrder");
    }

    static long refreshNanos() {
        return (Long) read("RefreshMicros") * 1000;
    }

    private static Object read(String attribute) {
        try {
            return BEANS.getAttribute(name(), attribute);
        } catch (JMException error) {
            throw new IllegalStateException("the plug-in shows no " + attribute, error);
        }
    }

    private static ObjectName name() throws JMException {
        return new ObjectName("Hadoop:service=ResourceManager,name=NodewiseOrder-first");
    }
}
