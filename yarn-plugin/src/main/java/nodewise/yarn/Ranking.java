package nodewise.yarn;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntToDoubleFunction;
import nodewise.yarn.Settings.Judgement;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;

/**
 * Nodes from best to worst, those that are as good as equal by turns. Any number of threads walk it, and each moves down
 * what it finds too far up, so that nobody meets it there again; what has become better goes up in the next ranking.
 */
final class Ranking<N extends SchedulerNode> {
    private final Judgement judgement;
    private final ConcurrentNavigableMap<Place, Seat<N>> order = new ConcurrentSkipListMap<>(Place.ORDER);
    private final AtomicLong turn = new AtomicLong();
    final List<Seat<N>> seats;

    /**
     * Where a node stands: `level` counts from the best score down in steps of what is as good as equal. Those without room
     * come at the very end: each costs the scheduler a look, and some reserve the first such one and walk no further.
     */
    private record Place(boolean full, boolean last, double level, long turn) {
        static final Comparator<Place> ORDER = Comparator.comparing(Place::full).thenComparing(Place::last)
            .thenComparingDouble(Place::level).thenComparingLong(Place::turn);
    }

    Ranking(Judgement judgement, List<Seat<N>> unordered) {
        this.judgement = judgement;
        seats = new ArrayList<>(unordered);
        seats.sort(Comparator.comparingDouble((Seat<N> seat) -> (seat.score().last() ? 2 : 0) - seat.score().value())
            .thenComparing(seat -> seat.node().getNodeID()));
        seats.forEach(seat -> order.put(place(seat, turn.getAndIncrement()), seat));
    }

    /** Of nodes as they are `now`, by these values. */
    static <N extends SchedulerNode> Ranking<N> of(Judgement judgement, Values values, Collection<N> nodes, Placed placed, long now) {
        List<String> hosts = nodes.stream().map(node -> node.getNodeID().getHost()).toList();
        IntToDoubleFunction neutral = Score.neutral(judgement, values, hosts);
        List<Seat<N>> seats = new ArrayList<>(nodes.size());
        for (N node : nodes) {
            Score score = Score.of(judgement, values, node.getNodeID().getHost(), neutral);
            seats.add(new Seat<>(node, score, placed.whenTrue(node.getNodeID(), score.at(), Seat.share(node, judgement), now)));
        }
        return new Ranking<>(judgement, seats);
    }

    /** All nodes in the order of this moment; the first goes behind its equals, lest all fill the same node. */
    Iterator<N> walk() {
        return new Walk();
    }

    private Place place(Seat<N> seat, long turn) {
        double below = seats.get(0).score().value() - seat.live(judgement);
        double level = judgement.near() == 0 ? below : Math.floor(below / judgement.near() + 1e-9);
        return new Place(!seat.hasRoom(judgement), seat.score().last(), level, turn);
    }

    /** It stands in two places for a moment rather than in none, lest another walk misses it. */
    private void move(Seat<N> seat, Place from, Place to) {
        order.put(to, seat);
        if (!order.remove(from, seat)) { // another walk has moved it
            order.remove(to);
        }
    }

    /** One walk, which looks at nodes only as it comes to them. */
    private final class Walk extends LookAhead<N> {
        private Iterator<Map.Entry<Place, Seat<N>>> all = order.entrySet().iterator();
        private Seat<N> first;

        @Override
        N find() {
            while (all.hasNext()) {
                Map.Entry<Place, Seat<N>> one = all.next();
                Seat<N> seat = one.getValue();
                Place was = one.getKey();
                Place now = place(seat, was.turn());
                if (seat != first && Place.ORDER.compare(now, was) <= 0) {
                    if (first == null) {
                        first = seat;
                        move(seat, was, new Place(was.full(), was.last(), was.level(), turn.getAndIncrement()));
                    }
                    return seat.node();
                }
                if (seat != first) { // it comes again further down, maybe at once
                    move(seat, was, now);
                    all = order.tailMap(was, false).entrySet().iterator();
                }
            }
            return null;
        }
    }
}
