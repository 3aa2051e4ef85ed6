package nodewise.yarn;

import java.util.Collections;
import java.util.Iterator;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AppSchedulingInfo;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerUtils;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.CandidateNodeSet;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.LocalityAppPlacementAllocator;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives an application with the tag `program:NAME` the nodes in that program's order, and any other those of its queue's
 * policy. Whatever goes wrong here is caught, as it would end the ResourceManager at each of its starts.
 */
public class ByProgram<N extends SchedulerNode> extends LocalityAppPlacementAllocator<N> {
    private static final Logger LOG = LoggerFactory.getLogger(ByProgram.class);
    private static final String TAG = "program:";
    private static final AtomicBoolean TOLD = new AtomicBoolean();

    private volatile String program;
    private volatile ProgramRankings rankings;
    private volatile long skipInterval;

    @Override
    public void initialize(AppSchedulingInfo application, SchedulerRequestKey key, RMContext context) {
        super.initialize(application, key, context);
        try {
            begin(program(application, context), context);
        } catch (RuntimeException | Error error) {
            tell(error);
        }
    }

    @Override
    public Iterator<N> getPreferredNodeIterator(CandidateNodeSet<N> candidates) {
        Iterator<N> found = null;
        try {
            found = ordered(candidates);
        } catch (RuntimeException | Error error) {
            tell(error);
        }
        return found == null ? usual(candidates) : found;
    }

    /** What YARN does without this class. */
    Iterator<N> usual(CandidateNodeSet<N> candidates) {
        return super.getPreferredNodeIterator(candidates);
    }

    /** Where rankings come from. */
    ProgramRankings rankings(RMContext context) {
        return ProgramRankings.shared(context);
    }

    private void begin(String name, RMContext context) {
        if (name != null) {
            skipInterval = YarnConfiguration.getSkipNodeInterval(context.getYarnConfiguration());
            rankings = rankings(context);
            rankings.of(name);
            program = name;
        }
    }

    /** What the tag names, in small letters as YARN keeps tags; null without one. */
    private static String program(AppSchedulingInfo application, RMContext context) {
        return context.getRMApps().get(application.getApplicationId()).getApplicationTags().stream()
            .map(tag -> tag.toLowerCase(Locale.ROOT)).filter(tag -> tag.startsWith(TAG)).map(tag -> tag.substring(TAG.length()))
            .filter(Programs::isName).sorted().findFirst().orElse(null);
    }

    /** Null where there is no order of its own. A node without a heartbeat is left out, as YARN does it elsewhere. */
    private Iterator<N> ordered(CandidateNodeSet<N> candidates) {
        if (program == null || candidates.getAllNodes().size() < 2) {
            return null;
        }
        ProgramRanking ranking = rankings.of(program);
        if (ranking == null) {
            return null;
        }
        Iterator<SchedulerNode> nodes = ranking.walk(candidates.getPartition());
        if (nodes == null) {
            return ranking.isComing() ? Collections.emptyIterator() : null;
        }
        return new Ordered(nodes, candidates);
    }

    private static void tell(Throwable error) {
        if (TOLD.compareAndSet(false, true)) {
            LOG.warn("an application has the order of its queue instead of its program's; this is told once", error);
        }
    }

    /** The candidates in the order of a ranking; where it breaks off, it goes on as usual, and may name a node twice. */
    private final class Ordered extends LookAhead<N> {
        private final Iterator<SchedulerNode> ranked;
        private final CandidateNodeSet<N> candidates;
        private Iterator<N> rest = Collections.emptyIterator();
        private boolean isBroken;

        Ordered(Iterator<SchedulerNode> ranked, CandidateNodeSet<N> candidates) {
            this.ranked = ranked;
            this.candidates = candidates;
        }

        @Override
        N find() {
            try {
                while (!isBroken && ranked.hasNext()) {
                    N found = candidates.getAllNodes().get(ranked.next().getNodeID());
                    if (found != null && SchedulerUtils.isNodeHeartbeated(found, skipInterval)) {
                        return found;
                    }
                }
            } catch (RuntimeException | Error error) {
                tell(error);
                isBroken = true;
                rest = usual(candidates);
            }
            return rest.hasNext() ? rest.next() : null;
        }
    }
}
