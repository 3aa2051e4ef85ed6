package nodewise.yarn;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import nodewise.yarn.Keys.WrongSetting;
import nodewise.yarn.Settings.Judgement;

/**
 * How nodes are judged for programs: `program.NAME.score` is for one, `program.score` for any, with `{program}` where the
 * name belongs. What one program's keys leave out is as for any.
 */
record Programs(Map<String, String> said) {
    private static final String ANY = "program.";
    private static final String NAME = "[a-z0-9._-]{1,64}";
    private static final String LONGEST = "x".repeat(64);
    private static final List<String> WORDS = List.of("score", "combine", "filter", "near", "herd", "room.memory-mb", "room.vcores");
    private static final Pattern KEY = Pattern.compile(
        "program\\.(?:(.+)\\.)?(?:" + WORDS.stream().map(Pattern::quote).collect(Collectors.joining("|")) + ")");

    /** WrongSetting names the first key that is wrong; keys that are no program's are left for whoever refuses them. */
    static Programs read(Keys keys) {
        Map<String, String> said = new TreeMap<>();
        Map<String, String> names = new TreeMap<>();
        for (String key : keys.below(ANY)) {
            Matcher found = KEY.matcher(key);
            if (found.matches()) {
                said.put(key, keys.text(key, ""));
                names.put(key, found.group(1) == null ? "" : found.group(1));
            }
        }
        Programs programs = new Programs(Collections.unmodifiableMap(said));
        names.forEach(programs::check);
        return programs;
    }

    static boolean isName(String text) {
        return text.matches(NAME);
    }

    /** Whether nodes are judged for this program. */
    boolean judges(String name) {
        return isName(name)
            && (said.containsKey(ANY + "score") || WORDS.stream().anyMatch(word -> said.containsKey(ANY + name + "." + word)));
    }

    /** Empty when nothing is said of the program; WrongSetting when its name makes no name of a value. */
    Optional<Judgement> judgement(String name) {
        return judges(name) ? Optional.of(judgement(ANY + name + ".", name)) : Optional.empty();
    }

    private Judgement judgement(String prefix, String name) {
        Properties properties = new Properties();
        for (String word : WORDS) {
            String text = said.getOrDefault(prefix + word, said.get(ANY + word));
            if (text != null) {
                properties.setProperty(prefix + word, text.replace("{program}", name));
            }
        }
        return Settings.judgement(new Keys(properties), prefix);
    }

    private void check(String key, String name) {
        if (!name.isEmpty() && !isName(name)) {
            throw new WrongSetting(key, "names no program: a name has at most 64 small letters, digits, dots, _ and -");
        }
        boolean isShared = name.isEmpty() && !said.containsKey(ANY + "score") && said.keySet().stream().anyMatch(one -> one.endsWith(".score"));
        if (!isShared) {
            judgement(name.isEmpty() ? ANY : ANY + name + ".", name.isEmpty() ? LONGEST : name);
        }
    }
}
