package nodewise.yarn;

import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;

/** Properties with types. What is wrong is told with its key, and so is a key that nobody asked for. */
final class Keys {
    private final Properties properties;
    private final Set<String> asked = new HashSet<>();

    /** A sentence about a mistake: the key, what it says, and what it may say. */
    static final class WrongSetting extends RuntimeException {
        WrongSetting(String key, String complaint) {
            super(Settings.FILE + ": " + key + " " + complaint);
        }
    }

    Keys(Properties properties) {
        this.properties = properties;
    }

    /** The keys that begin so. */
    List<String> below(String prefix) {
        return properties.stringPropertyNames().stream().filter(key -> key.startsWith(prefix)).sorted().toList();
    }

    /** What the key says; `otherwise` if there is no such key; refused if there is neither. */
    String text(String key, String otherwise) {
        asked.add(key);
        String found = properties.getProperty(key, otherwise);
        if (found == null || otherwise == null && found.isBlank()) {
            throw new WrongSetting(key, "is missing");
        }
        return found.trim();
    }

    double number(String key, String otherwise, double least, double most) {
        double found = parsed(key, text(key, otherwise));
        if (found < least || found > most) {
            throw new WrongSetting(key, "is " + text(key, otherwise) + ", and must be within " + least + " and " + most);
        }
        return found;
    }

    /** Whether the key says the second of two words; the first is what holds if there is no such key. */
    boolean choice(String key, String usual, String other) {
        String found = text(key, usual);
        if (!found.equals(usual) && !found.equals(other)) {
            throw new WrongSetting(key, "is " + found + ", and must be " + usual + " or " + other);
        }
        return found.equals(other);
    }

    static double parsed(String key, String text) {
        try {
            return Double.parseDouble(text.matches("[-+]?[0-9.]{1,99}([eE][-+]?[0-9]{1,2})?") ? text : "no number");
        } catch (NumberFormatException error) {
            throw new WrongSetting(key, "says " + text + " where a number belongs");
        }
    }

    void refuseOthers() {
        Set<String> others = new TreeSet<>(properties.stringPropertyNames());
        others.removeAll(asked);
        if (!others.isEmpty()) {
            throw new WrongSetting(others.iterator().next(), "is not known: is it misspelled?");
        }
    }
}
