package nodewise.yarn;

import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.Set;
import java.util.function.IntToDoubleFunction;
import java.util.TreeSet;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import nodewise.yarn.Settings.Judgement;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The cases of scores.json, which the information service's explanation is held against as well. */
class ScoreTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TestFactory
    Stream<DynamicTest> asTheCasesSay() throws IOException {
        JsonNode cases = JSON.readTree(ScoreTest.class.getResource("/scores.json"));
        return StreamSupport.stream(cases.spliterator(), false)
            .map(one -> DynamicTest.dynamicTest(one.path("name").asText(), () -> check(one)));
    }

    private static void check(JsonNode one) throws IOException {
        Settings settings = Given.settings("first.score = " + one.path("score").asText(),
            "first.filter = " + one.path("filter").asText(), "first.combine = " + one.path("combine").asText("mean"));
        Judgement judgement = settings.judgement("first");
        Values.Parts answered = new Values.Parts();
        answered.add(JSON.writeValueAsBytes(answer(one.path("values"))), 0);
        Values values = answered.values(settings.names());
        Set<String> nodes = new TreeSet<>();
        one.path("expected").fieldNames().forEachRemaining(nodes::add);
        IntToDoubleFunction neutral = Score.neutral(judgement, values, nodes);
        assertAll(nodes.stream().map(node -> () -> {
            Score found = Score.of(judgement, values, node, neutral);
            assertEquals(one.path("expected").path(node).path(0).asDouble(), found.value(), 1e-9, node);
            assertEquals(one.path("expected").path(node).path(1).asBoolean(), found.last(), node);
        }));
    }

    private static JsonNode answer(JsonNode values) {
        ObjectNode answer = JSON.createObjectNode();
        var data = answer.putArray("data");
        values.fields().forEachRemaining(name -> {
            var all = data.addObject().put("data_name", name.getKey()).putArray("values");
            name.getValue().fields().forEachRemaining(node -> all.addObject().put("node_name", node.getKey())
                .put("data_value", node.getValue().path(0).asText()).put("age", 1.5)
                .put("state", node.getValue().path(1).asBoolean() ? "fresh" : "stale"));
        });
        return answer;
    }
}
