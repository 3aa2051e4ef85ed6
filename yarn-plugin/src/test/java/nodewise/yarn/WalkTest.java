package nodewise.yarn;

import static nodewise.yarn.Given.hosts;
import static nodewise.yarn.Given.place;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import nodewise.yarn.Settings.Judgement;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.junit.jupiter.api.Test;

class WalkTest {
    private static final Judgement JUDGEMENT = Given.settings("first.score = free higher 0..1", "first.near = 0.05").judgement("first");

    private static Seat<SchedulerNode> seat(String host, double score, boolean last) {
        SchedulerNode node = Given.node(host);
        return new Seat<>(node, new Score(score, last, false, 0), Seat.share(node, JUDGEMENT));
    }

    private static Ranking<SchedulerNode> ranking(List<Seat<SchedulerNode>> seats) {
        return new Ranking<>(JUDGEMENT, seats);
    }

    @Test
    void theBestComesFirstAndWhatAFilterStopsComesLast() {
        Ranking<SchedulerNode> ranking = ranking(List.of(seat("a", 0.2, false), seat("b", 0.9, true), seat("c", 0.8, false), seat("d", 0.5, false)));

        assertEquals(List.of("c", "d", "a", "b"), hosts(ranking.walk()));
    }

    @Test
    void equalsTakeTurns() {
        Ranking<SchedulerNode> ranking = ranking(List.of(seat("a", 0.80, false), seat("b", 0.82, false), seat("c", 0.79, false), seat("d", 0.3, false)));

        assertEquals(List.of("b", "a", "c", "d"), hosts(ranking.walk()));
        assertEquals(List.of("a", "c", "b", "d"), hosts(ranking.walk()));
        assertEquals(List.of("c", "b", "a", "d"), hosts(ranking.walk()));
        assertEquals(List.of("b", "a", "c", "d"), hosts(ranking.walk()));
    }

    @Test
    void whatWasPlacedSinceTheValueCountsAgainstANode() {
        List<Seat<SchedulerNode>> seats = List.of(seat("a", 0.9, false), seat("b", 0.6, false), seat("c", 0.3, false));
        Ranking<SchedulerNode> ranking = ranking(seats);
        List<String> firsts = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            SchedulerNode first = ranking.walk().next();
            firsts.add(first.getNodeID().getHost());
            place(first, 1024, 1); // a quarter of its cores
        }

        // 0.9, 0.65, 0.6, 0.4, 0.35, 0.3, 0.15, 0.1: always the best of what is left
        assertEquals(List.of("a", "a", "b", "a", "b", "c", "a", "b"), firsts);
    }

    @Test
    void whoIsFullComesAfterEverybody() {
        List<Seat<SchedulerNode>> seats = List.of(seat("a", 0.9, false), seat("b", 0.5, false), seat("c", 0.4, true));
        place(seats.get(0).node(), 8000, 1);

        assertEquals(List.of("b", "c", "a"), hosts(ranking(seats).walk()));
    }

    @Test
    void coresDoNotCountWhereNoneAreAskedFor() {
        Judgement memoryOnly = Given.settings("first.score = free higher 0..1", "first.room.vcores = 0").judgement("first");
        Seat<SchedulerNode> seat = seat("a", 0.9, false);
        place(seat.node(), 1024, 9);

        assertTrue(seat.hasRoom(memoryOnly));
        assertEquals(0.9 - 1.0 / 8, seat.live(memoryOnly), 1e-9);
        assertFalse(seat.hasRoom(JUDGEMENT));
    }

    @Test
    void aNodeThatIsStoppedByAFilterNeverComesBeforeOneThatIsNotHoweverMuchIsPlacedThere() {
        List<Seat<SchedulerNode>> seats = List.of(seat("a", 0.9, false), seat("b", 0.9, true));
        place(seats.get(0).node(), 4096, 3);

        assertEquals(List.of("a", "b"), hosts(ranking(seats).walk()));
    }

    @Test
    void nobodyIsDroppedAndNobodyComesTwice() {
        Random random = new Random(7);
        for (int trial = 0; trial < 300; trial++) {
            List<Seat<SchedulerNode>> seats = new ArrayList<>();
            Set<String> all = new TreeSet<>();
            for (int i = 0; i < random.nextInt(12); i++) {
                seats.add(seat("n" + i, random.nextInt(5) / 5.0 + random.nextDouble() / 50, random.nextInt(4) == 0));
                place(seats.get(i).node(), random.nextInt(9) * 1024, random.nextInt(5));
                all.add("n" + i);
            }
            List<String> found = hosts(ranking(seats).walk());

            assertEquals(all.size(), found.size());
            assertEquals(all, new TreeSet<>(found));
        }
    }

    @Test
    void theEndIsAnEnd() {
        Iterator<SchedulerNode> walk = ranking(List.of()).walk();

        assertThrows(NoSuchElementException.class, walk::next);
    }
}
