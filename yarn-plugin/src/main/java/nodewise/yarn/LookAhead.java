package nodewise.yarn;

import java.util.Iterator;
import java.util.NoSuchElementException;

/** An iterator that looks for what comes next only when it is asked for it. */
abstract class LookAhead<T> implements Iterator<T> {
    private boolean hasLooked;
    private T next;

    /** What comes next, null when there is no more. */
    abstract T find();

    @Override
    public final boolean hasNext() {
        if (!hasLooked) {
            next = find();
            hasLooked = true;
        }
        return next != null;
    }

    @Override
    public final T next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        hasLooked = false;
        return next;
    }
}
