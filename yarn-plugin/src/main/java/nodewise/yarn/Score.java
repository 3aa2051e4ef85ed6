package nodewise.yarn;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntToDoubleFunction;
import nodewise.yarn.Settings.Condition;
import nodewise.yarn.Settings.Judgement;
import nodewise.yarn.Settings.Term;
import nodewise.yarn.Values.Value;

/**
 * How good a node is: sum(weight * part) / sum(weight), where a part is how far the value lies in its range, cut off at the
 * ends, and counted from the other end where lower is better. A product is the same mean of logarithms: the parts to the power
 * of their share of the weights, multiplied. The information service explains it by the same arithmetic.
 *
 * @param value between 0 and 1
 * @param last whether it goes behind the others: a condition does not hold, or a value is missing that must not be
 * @param blind whether it lacks a fresh value
 * @param at when the youngest of its values was true (System.nanoTime); Long.MIN_VALUE without any
 */
record Score(double value, boolean last, boolean blind, long at) {

    /** What the others have on average, of the term of that number; 0.5 where nobody has a value. Worked out when needed. */
    static IntToDoubleFunction neutral(Judgement judgement, Values values, Collection<String> nodes) {
        Map<Integer, Double> known = new HashMap<>();
        return number -> known.computeIfAbsent(number, absent -> {
            Term term = judgement.terms().get(number);
            return nodes.stream().map(node -> values.get(term.name(), node))
                .filter(value -> value != null && value.fresh()).mapToDouble(value -> part(term, value.number()))
                .average().orElse(0.5);
        });
    }

    static Score of(Judgement judgement, Values values, String node, IntToDoubleFunction neutral) {
        double sum = 0;
        double weights = 0;
        boolean last = false;
        boolean blind = false;
        long at = Long.MIN_VALUE;
        List<Term> terms = judgement.terms();
        for (int i = 0; i < terms.size(); i++) {
            Term term = terms.get(i);
            Value value = values.get(term.name(), node);
            boolean fresh = value != null && value.fresh();
            boolean usable = counts(term, value);
            double part = usable ? part(term, value.number()) : neutral.applyAsDouble(i);
            sum += term.weight() * (judgement.product() ? Math.log(part) : part);
            weights += term.weight();
            last |= !usable && term.missing().equals("exclude-last");
            blind |= !fresh;
            at = value == null ? at : Math.max(at, value.at());
        }
        for (Condition condition : judgement.conditions()) {
            Value value = values.get(condition.name(), node);
            last |= value == null || !value.fresh() || !condition.holds(value.number());
        }
        double mean = sum / weights;
        return new Score(judgement.product() ? Math.exp(mean) : mean, last, blind, at);
    }

    /** Whether any value of one of the nodes counts. */
    static boolean hasValues(Judgement judgement, Values values, Collection<String> nodes) {
        return judgement.terms().stream().anyMatch(term -> nodes.stream().map(node -> values.get(term.name(), node))
            .anyMatch(value -> counts(term, value)));
    }

    private static boolean counts(Term term, Value value) {
        return value != null && (value.fresh() || term.missing().equals("last-known"));
    }

    private static double part(Term term, double value) {
        double part = Math.min(1, Math.max(0, (value - term.low()) / (term.high() - term.low())));
        return term.higher() ? part : 1 - part;
    }
}
