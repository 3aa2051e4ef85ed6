package nodewise.yarn;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.hadoop.yarn.api.records.NodeId;
import org.junit.jupiter.api.Test;

class PlacedTest {
    private static final long SECOND = 1_000_000_000L;
    private final Placed placed = new Placed();
    private final NodeId node = NodeId.newInstance("a", 1); // held, as the scheduler holds its nodes

    private double ask(double at, double share, double now) {
        return placed.whenTrue(node, (long) (at * SECOND), share, (long) (now * SECOND));
    }

    @Test
    void itIsWhatWasGivenAwayAtThatMoment() {
        assertEquals(0.0, ask(0, 0.0, 0));
        assertEquals(0.0, ask(0, 0.25, 10));
        assertEquals(0.0, ask(0, 0.5, 20));
        assertEquals(0.25, ask(15, 0.5, 21), "the value of second 15 knows what came in second 10, but not what came in 20");
        assertEquals(0.5, ask(22, 0.5, 23));
    }

    @Test
    void aNodeThatIsSeenForTheFirstTimeBeginsThere() {
        assertEquals(0.75, ask(0, 0.75, 100));
    }

    @Test
    void aValueThatNeverChangesAgainIsNotHeldAgainstANodeForEver() {
        ask(0, 0.0, 0);
        ask(0, 0.5, 10);

        assertEquals(0.0, ask(0, 0.5, 300));
        assertEquals(0.5, ask(0, 0.5, 311));
    }
}
