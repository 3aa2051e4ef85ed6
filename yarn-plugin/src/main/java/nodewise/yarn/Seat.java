package nodewise.yarn;

import nodewise.yarn.Settings.Judgement;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;

/** A node in the order, with the share of it that was given away when its value was true. */
record Seat<N extends SchedulerNode>(N node, Score score, double shareWhenTrue) {

    /** The score less what has been placed since. */
    double live(Judgement judgement) {
        return score.value() - judgement.herd() * Math.max(0, share(node, judgement) - shareWhenTrue);
    }

    boolean hasRoom(Judgement judgement) {
        Resource free = node.getUnallocatedResource();
        return free.getMemorySize() >= judgement.roomMb()
            && (judgement.roomVcores() == 0 || free.getVirtualCores() >= judgement.roomVcores());
    }

    /** How much is given away of what is scarcest on the node, between 0 and 1; cores do not count where none are asked for. */
    static double share(SchedulerNode node, Judgement judgement) {
        Resource total = node.getTotalResource();
        Resource free = node.getUnallocatedResource();
        double memory = 1 - (double) free.getMemorySize() / Math.max(1, total.getMemorySize());
        return judgement.roomVcores() == 0 ? memory : Math.max(memory, 1 - (double) free.getVirtualCores() / Math.max(1, total.getVirtualCores()));
    }
}
