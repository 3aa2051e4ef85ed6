package nodewise.yarn;

import java.io.IOException;
import java.io.Reader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import nodewise.yarn.Keys.WrongSetting;

/**
 * What the file says: where values come from (services of one database; `tokenFile` may be null), and how each policy, and
 * each program, judges nodes by them.
 */
record Settings(List<URI> urls, Path tokenFile, Duration interval, Duration timeout, Map<String, Judgement> judgements, Programs programs) {
    static final String FILE = "nodewise-policy.properties";
    private static final List<String> POLICIES = List.of("first", "second");
    private static final String NAME = "([A-Za-z_][A-Za-z0-9_.:-]{0,127})";
    private static final Pattern TERM = Pattern.compile(NAME
        + "\\s+(higher|lower)\\s+(\\S+?)\\.\\.(\\S+)(?:\\s+weight\\s+(\\S+))?(?:\\s+missing\\s+(exclude-last|neutral|last-known))?");
    private static final Pattern CONDITION = Pattern.compile(NAME + "\\s*(>=|<=|>|<)\\s*(\\S+)");

    /** How one policy judges: by the mean of its terms or by their product; `near` and `herd` in units of the score, 0 to 1. */
    record Judgement(
        List<Term> terms, boolean product, List<Condition> conditions, double near, double herd, long roomMb, int roomVcores) {
        /** The data names that it needs. */
        Stream<String> names() {
            return Stream.concat(terms.stream().map(Term::name), conditions.stream().map(Condition::name));
        }
    }

    /**
     * One value's part of the score. A node without a fresh one goes behind the others (exclude-last), gets what these have on
     * average (neutral), or what its value was, however old (last-known), without any the average.
     */
    record Term(String name, boolean higher, double low, double high, double weight, String missing) {}

    /** Nodes for which this does not hold go last; it does not hold where there is no fresh value. */
    record Condition(String name, String comparison, double bound) {
        boolean holds(double value) {
            return value == bound ? comparison.endsWith("=") : value > bound == comparison.startsWith(">");
        }
    }

    /** Reads the file; WrongSetting names the first key that is wrong. */
    static Settings read(Path file) throws IOException {
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
            properties.load(reader);
        }
        return of(new Keys(properties));
    }

    static Settings of(Keys keys) {
        List<URI> urls = Stream.of(keys.text("service.url", null).split(",", -1)).map(Settings::service).toList();
        String token = keys.text("service.token-file", "");
        if (!token.isEmpty() && !Files.isReadable(Path.of(token))) {
            throw new WrongSetting("service.token-file", "is " + token + ", which cannot be read");
        }
        Duration interval = Duration.ofMillis((long) keys.number("service.poll-interval-ms", "1000", 50, 3_600_000));
        Duration timeout = Duration.ofMillis((long) keys.number("service.timeout-ms", keys.text("service.poll-interval-ms", "1000"), 50, 600_000));
        Map<String, Judgement> judgements = new TreeMap<>();
        for (String name : POLICIES) {
            if (!keys.below(name + ".").isEmpty()) {
                judgements.put(name, judgement(keys, name + "."));
            }
        }
        Programs programs = Programs.read(keys);
        keys.refuseOthers();
        return new Settings(
            urls, token.isEmpty() ? null : Path.of(token), interval, timeout, judgements, programs);
    }

    private static URI service(String text) {
        String url = text.strip();
        if (!url.matches("https?://[A-Za-z0-9.:\\[\\]-]+/?")) {
            throw new WrongSetting("service.url", "is " + url + ", and must be like http://HOST:PORT");
        }
        return URI.create(url.replaceAll("/$", ""));
    }

    /** The addresses of the services, as they are told to people. */
    String services() {
        return urls.stream().map(URI::toString).collect(Collectors.joining(","));
    }

    /** The data names that policies need. */
    Set<String> names() {
        return judgements.values().stream().flatMap(Judgement::names).collect(Collectors.toCollection(TreeSet::new));
    }

    Judgement judgement(String name) {
        if (!judgements.containsKey(name)) {
            throw new WrongSetting(name + ".score", "is missing, and YARN was started with the policy " + name);
        }
        return judgements.get(name);
    }

    /** What the keys say below a prefix, which ends with a dot. */
    static Judgement judgement(Keys keys, String prefix) {
        String score = prefix + "score";
        String filter = prefix + "filter";
        return new Judgement(
            each(score, keys.text(score, null), TERM, "cpu_free_ratio higher 0..1 weight 2 missing neutral", found -> term(score, found)),
            keys.choice(prefix + "combine", "mean", "product"),
            each(filter, keys.text(filter, ""), CONDITION, "cpu_free_ratio >= 0.1",
                found -> new Condition(found.group(1), found.group(2), Keys.parsed(filter, found.group(3)))),
            keys.number(prefix + "near", "0.05", 0, 1),
            keys.number(prefix + "herd", "1", 0, 1000),
            (long) keys.number(prefix + "room.memory-mb", "1024", 1, 1e9),
            (int) keys.number(prefix + "room.vcores", "1", 0, 1e6));
    }

    private static Term term(String key, Matcher found) {
        double low = Keys.parsed(key, found.group(3));
        double high = Keys.parsed(key, found.group(4));
        double weight = found.group(5) == null ? 1 : Keys.parsed(key, found.group(5));
        if (low >= high || weight <= 0) {
            throw new WrongSetting(key, "says " + found.group() + ": a range begins with the lower number, a weight is above 0");
        }
        String missing = found.group(6) == null ? "exclude-last" : found.group(6);
        return new Term(found.group(1), found.group(2).equals("higher"), low, high, weight, missing);
    }

    /** What stands between semicolons. */
    private static <T> List<T> each(String key, String text, Pattern pattern, String example, Function<Matcher, T> made) {
        List<T> all = new ArrayList<>();
        for (String one : text.isEmpty() ? new String[0] : text.replaceFirst(";$", "").split(";", -1)) {
            Matcher found = pattern.matcher(one.trim());
            if (!found.matches()) {
                throw new WrongSetting(key, "says " + one.trim() + ", and must be like " + example);
            }
            all.add(made.apply(found));
        }
        return List.copyOf(all);
    }
}
