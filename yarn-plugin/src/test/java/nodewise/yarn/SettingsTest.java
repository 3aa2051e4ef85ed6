package nodewise.yarn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Set;
import nodewise.yarn.Keys.WrongSetting;
import nodewise.yarn.Settings.Judgement;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SettingsTest {
    private static final String LONG = "a_name_of_a_value_that_leaves_no_room_for_the_longest_name_of_a_program_behind_it";

    @Test
    void whatIsLeftOutHasADefault() {
        Settings found = Given.settings("first.score = free higher 0..1");

        assertEquals(1000, found.interval().toMillis());
        assertNull(found.tokenFile());
        assertEquals(0.05, found.judgement("first").near());
        assertEquals(1, found.judgement("first").terms().get(0).weight());
        assertEquals("exclude-last", found.judgement("first").terms().get(0).missing());
        assertEquals(1024, found.judgement("first").roomMb());
    }

    @Test
    void severalServicesStandWithCommasBetween() {
        Settings found = Given.settings("service.url = http://a:8400/, https://b:8400", "first.score = free higher 0..1");

        assertEquals("http://a:8400,https://b:8400", found.services());
    }

    @Test
    void allNamesAreAskedForInOneCall() {
        Settings found = Given.settings("first.score = free higher 0..1; load lower 0..8", "second.score = speed:x:32 higher -1..1e3",
            "second.filter = free >= 0.1; temperature < 80");

        assertEquals(Set.of("free", "load", "speed:x:32", "temperature"), found.names());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "service.url = localhost:8400           | service.url is localhost:8400, and must be like http://HOST:PORT",
        "service.url = http://my_host:1         | service.url is http://my_host:1, and must be like http://HOST:PORT",
        "service.url = http://h:1/path          | service.url is http://h:1/path, and must be like http://HOST:PORT",
        "service.url = http://h:1,               | service.url is , and must be like http://HOST:PORT",
        "service.token-file = /no/such          | service.token-file is /no/such, which cannot be read",
        "service.poll-interval-ms = 5           | service.poll-interval-ms is 5, and must be within 50",
        "service.poll-interval-ms = soon        | service.poll-interval-ms says soon where a number belongs",
        "service.timeout-ms = NaN               | service.timeout-ms says NaN where a number belongs",
        "service.timeout = 5                    | service.timeout is not known",
        "first.score = free                     | first.score says free, and must be like",
        "first.score = free higher 0..1 missing zero | first.score says free higher 0..1 missing zero, and must be like",
        "first.score = free higher 1..1         | first.score says free higher 1..1: a range begins with the lower number",
        "first.score = free higher a..1         | first.score says a where a number belongs",
        "first.score = free higher 0..1 weight 0 | a weight is above 0",
        "first.score = free higher 0..1; ; load lower 0..1 | first.score says , and must be like",
        "first.score =                          | first.score is missing",
        "first.score = ;                        | first.score says , and must be like",
        "first.score = free higher 0..1e999     | first.score says 1e999 where a number belongs",
        "first.filter = free = 1                | first.filter says free = 1, and must be like cpu_free_ratio >= 0.1",
        "first.filter = free > x                | first.filter says x where a number belongs",
        "first.near = 2                         | first.near is 2, and must be within 0.0 and 1.0",
        "first.herd = -1                        | first.herd is -1",
        "first.room.vcores = -1                 | first.room.vcores is -1",
        "first.scores = x                       | first.scores is not known: is it misspelled?",
        "third.score = free higher 0..1         | third.score is not known",
        "second.near = 0.1                      | second.score is missing",
        "program.score = speed:{program}        | program.score says speed:xxx",
        "program.score = speed:{name} higher 0..1 | program.score says speed:{name} higher 0..1, and must be like",
        "program.score = " + LONG + "{program} higher 0..1 | and must be like",
        "program.near = 0.1                     | program.score is missing",
        "program.net.filter = free > 1          | program.net.score is missing",
        "program.net.v2.score = free            | program.net.v2.score says free, and must be like",
        "program.Net.score = free higher 0..1   | program.Net.score names no program",
        "program.net.scores = free higher 0..1  | program.net.scores is not known",
    })
    void aMistakeIsToldWithItsKey(String line, String complaint) {
        String message = assertThrows(WrongSetting.class, () -> Given.settings("first.score = free higher 0..1", line)).getMessage();

        assertTrue(message.startsWith("nodewise-policy.properties: ") && message.contains(complaint), message);
    }

    @Test
    void aPolicyThatIsTurnedOnMustBeThere() {
        Settings found = Given.settings("first.score = free higher 0..1");

        assertTrue(assertThrows(WrongSetting.class, () -> found.judgement("second")).getMessage().contains("second.score is missing"));
    }

    @Test
    void aProgramIsJudgedByItsOwnKeysAndElseByThoseOfAnyProgram() {
        Programs found = Given.settings("program.score = speed:{program} higher 0..1", "program.near = 0.2", "program.room.vcores = 0",
            "program.net.v2.room.memory-mb = 5", "program.room.near = 0.3").programs();

        Judgement any = found.judgement("any").orElseThrow();
        assertEquals("speed:any", any.terms().get(0).name());
        assertEquals(0.2, any.near());
        assertEquals(0, any.roomVcores());
        assertEquals(5, found.judgement("net.v2").orElseThrow().roomMb());
        assertEquals("speed:net.v2", found.judgement("net.v2").orElseThrow().terms().get(0).name());
        assertEquals(0.3, found.judgement("room").orElseThrow().near());
        assertFalse(found.judges("No"));
        assertFalse(Given.settings("program.net.score = free higher 0..1").programs().judges("other"));
    }
}
