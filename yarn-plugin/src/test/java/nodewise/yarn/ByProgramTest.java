package nodewise.yarn;

import static nodewise.yarn.Given.hosts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import javax.management.JMException;
import javax.management.ObjectName;
import nodewise.yarn.Question.Known;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.resourcemanager.MockNodes;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AppSchedulingInfo;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.CandidateNodeSet;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.SimpleCandidateNodeSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Allocators as YARN makes them, with the values of a server that answers as the information service does. */
class ByProgramTest {
    private static final ApplicationId ID = ApplicationId.newInstance(1, 1);
    private static final Random RANDOM = new Random(7);
    @TempDir Path folder;
    private HttpServer server;
    private Watch watch;
    private ProgramRankings rankings;
    private final Map<String, Map<String, Double>> values = new ConcurrentHashMap<>();
    private final List<String> asked = new ArrayList<>();
    private final List<SchedulerNode> nodes = new ArrayList<>(List.of(Given.node("a"), Given.node("b"), Given.node("c")));

    /** What YARN would do goes from the last candidate to the first. */
    private final class Allocator extends ByProgram<SchedulerNode> {
        @Override
        ProgramRankings rankings(RMContext context) {
            return rankings;
        }

        @Override
        Iterator<SchedulerNode> usual(CandidateNodeSet<SchedulerNode> candidates) {
            List<SchedulerNode> all = new ArrayList<>(candidates.getAllNodes().values());
            Collections.reverse(all);
            return all.iterator();
        }
    }

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/api/v1/data", this::answer);
        server.start();
        Path file = folder.resolve(Settings.FILE);
        Files.writeString(file, String.join("\n", "service.url = http://127.0.0.1:" + server.getAddress().getPort(),
            "service.timeout-ms = 20000", "first.score = free higher 0..1", "program.score = speed:{program} higher 0..1",
            "program.odd.score = speed:odd lower 0..1"));
        watch = new Watch(file);
        rankings = new ProgramRankings(watch, () -> Map.of("", nodes));
        values.put("speed:p", Map.of("a", 0.9, "b", 0.5, "c", 0.1));
        values.put("speed:q", Map.of("a", 0.1, "b", 0.5, "c", 0.9));
        values.put("speed:odd", Map.of("a", 0.5, "b", 0.1, "c", 0.9));
    }

    @AfterEach
    void stop() {
        server.stop(0);
        rankings.drop(watch.settings, Long.MAX_VALUE);
    }

    private void answer(HttpExchange exchange) throws IOException {
        String query = exchange.getRequestURI().getQuery();
        asked.add(query);
        String body = Arrays.stream(query.split("&")).filter(one -> one.startsWith("name=")).map(one -> one.substring(5))
            .filter(values::containsKey).map(name -> new String(Given.answer(name, values.get(name), 1.0, "fresh"), StandardCharsets.UTF_8))
            .map(one -> one.substring("{\"data\": [".length(), one.length() - 2)).collect(Collectors.joining(","));
        byte[] bytes = ("{\"data\": [" + body + "]}").getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    private Allocator allocator(String... tags) {
        Allocator allocator = new Allocator();
        RMContext context = context(Map.of(ID, Set.of(tags)));
        allocator.initialize(application(context), null, context);
        return allocator;
    }

    private static AppSchedulingInfo application(RMContext context) {
        return new AppSchedulingInfo(ApplicationAttemptId.newInstance(ID, 1), "me", null, null, 0, null, new HashMap<>(), context, false);
    }

    /** With an application of these tags; whatever else it is asked for is null. */
    private static RMContext context(Map<ApplicationId, Set<String>> tags) {
        ConcurrentHashMap<ApplicationId, RMApp> all = new ConcurrentHashMap<>();
        tags.forEach((id, some) -> all.put(id, proxy(RMApp.class, Map.of("getApplicationTags", some))));
        Configuration site = new Configuration(false);
        site.setInt("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", 600_000); // nodes here say nothing
        return proxy(RMContext.class, Map.of("getRMApps", all, "getYarnConfiguration", site));
    }

    private static <T> T proxy(Class<T> type, Map<String, Object> answers) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, given) -> answers.get(method.getName())));
    }

    private List<String> order(Allocator allocator) {
        return hosts(allocator.getPreferredNodeIterator(candidates(nodes, "")));
    }

    private static SimpleCandidateNodeSet<SchedulerNode> candidates(List<SchedulerNode> nodes, String partition) {
        Map<NodeId, SchedulerNode> all = new LinkedHashMap<>();
        nodes.forEach(node -> all.put(node.getNodeID(), node));
        return new SimpleCandidateNodeSet<>(all, partition);
    }

    @Test
    void programsHaveOrdersOfTheirOwnAtTheSameTimeAndShareTheirPolls() throws InterruptedException {
        Allocator p = allocator("x", "program:p");
        Allocator q = allocator("program:q");
        Allocator odd = allocator("program:ODD");
        assertEquals(List.of(), order(p), "the first container waits a moment for the values");
        rankings.turn();
        rankings.turn();

        assertEquals(List.of("a", "b", "c"), order(p));
        assertEquals(List.of("c", "b", "a"), order(q));
        assertEquals(List.of("b", "a", "c"), order(odd));
        assertEquals(List.of("name=speed:odd&name=speed:p&name=speed:q&skip_unknown=true"), asked);
    }

    @Test
    void whoHasNoProgramOrOneWithoutValuesIsOrderedAsUsual() throws InterruptedException {
        Allocator none = allocator("kind=command");
        Allocator wrong = allocator("program:a/b");
        Allocator unknown = allocator("program:never.seen");
        rankings.turn();

        for (Allocator one : List.of(none, wrong, unknown)) {
            assertEquals(List.of("c", "b", "a"), order(one));
        }
        Allocator p = allocator("program:p");
        rankings.turn();
        assertEquals(List.of("b"), hosts(p.getPreferredNodeIterator(candidates(nodes.subList(1, 2), ""))));
        assertEquals(List.of("c", "b", "a"), hosts(p.getPreferredNodeIterator(candidates(nodes, "other"))));
    }

    @Test
    void whatEndsWithTheServiceComesBackWithIt() throws IOException, InterruptedException {
        Allocator p = allocator("program:p");
        rankings.turn();
        InetSocketAddress where = server.getAddress();
        server.stop(0);
        allocator("program:q"); // another name is asked for at once
        rankings.turn();
        assertEquals(List.of("c", "b", "a"), order(p));
        assertTrue(rankings.question.failed.contains("programs have the order of their queue"), rankings.question.failed);

        server = HttpServer.create(where, 0);
        server.createContext("/api/v1/data", this::answer);
        server.start();
        allocator("program:odd");
        rankings.turn();
        assertEquals(List.of("a", "b", "c"), order(p));
    }

    @Test
    void aNodeThatIsSilentOrGoneIsPassedOver() throws InterruptedException {
        nodes.set(0, new FiCaSchedulerNode(MockNodes.newNodeInfo(0, Resource.newInstance(8192, 4), 1, "a", 1234), false) {
            @Override
            public synchronized long getLastHeartbeatMonotonicTime() {
                return Long.MIN_VALUE / 2;
            }
        });
        Allocator p = allocator("program:p");
        rankings.turn();
        assertEquals(List.of("b", "c"), order(p));

        List<SchedulerNode> left = List.of(nodes.get(0), nodes.get(2), Given.node("new"));
        assertEquals(List.of("c"), hosts(p.getPreferredNodeIterator(candidates(left, ""))));
    }

    @Test
    void asManyProgramsAreRankedAsMayBeAndThoseThatNobodyAsksForMakeRoom() throws InterruptedException {
        for (int i = 0; i < ProgramRankings.MOST; i++) {
            assertNotNull(rankings.of("p" + i));
        }
        assertEquals(null, rankings.of("q"));
        rankings.drop(watch.settings, System.nanoTime() + ProgramRankings.KEPT.toNanos() / 2);
        assertEquals(null, rankings.of("q"));
        rankings.drop(watch.settings, System.nanoTime() + ProgramRankings.KEPT.toNanos() + 1_000_000_000L);
        assertNotNull(rankings.of("q"));
    }

    @Test
    void theManagersPageShowsAProgramAsLongAsItIsRanked() throws InterruptedException, JMException {
        ObjectName bean = new ObjectName("Hadoop:service=ResourceManager,name=NodewiseOrder-program.p");
        allocator("program:p");
        rankings.turn();
        var page = ManagementFactory.getPlatformMBeanServer();
        assertEquals(List.of("a:1234 0.900", "b:1234 0.500", "c:1234 0.100"), List.of((String[]) page.getAttribute(bean, "First")));
        assertEquals(false, page.getAttribute(bean, "StockOrder"));

        rankings.drop(watch.settings, Long.MAX_VALUE);
        assertFalse(page.isRegistered(bean));
    }

    /** A node that breaks when it is looked at, more or less often. */
    private static SchedulerNode broken(String host) {
        int often = RANDOM.nextInt(1, 8);
        return new FiCaSchedulerNode(MockNodes.newNodeInfo(0, Resource.newInstance(8192, 4), 1, host, 1234), false) {
            @Override
            public synchronized Resource getUnallocatedResource() {
                breakNow(often);
                return RANDOM.nextInt(9) == 0 ? null : super.getUnallocatedResource();
            }

            @Override
            public synchronized long getLastHeartbeatMonotonicTime() {
                breakNow(often);
                return super.getLastHeartbeatMonotonicTime();
            }
        };
    }

    private static void breakNow(int often) {
        if (RANDOM.nextInt(often + 1) == 0) {
            if (RANDOM.nextBoolean()) {
                throw new IllegalStateException("broken");
            }
            throw new LinkageError("broken");
        }
    }

    private static Values anyValues(List<SchedulerNode> of) throws IOException {
        Map<String, Double> some = new HashMap<>();
        double[] odd = {Double.MAX_VALUE, -Double.MAX_VALUE, Double.MIN_VALUE, -0.0, 0.5, 1e-300};
        of.forEach(node -> some.put(node.getNodeID().getHost(), RANDOM.nextBoolean() ? odd[RANDOM.nextInt(odd.length)] : RANDOM.nextDouble()));
        Values.Parts parts = new Values.Parts();
        parts.add(Given.answer("speed:p", some, RANDOM.nextDouble() * 1e9, RANDOM.nextInt(4) == 0 ? "stale" : "fresh"), System.nanoTime());
        return parts.values(Set.of());
    }

    private static RMContext anyContext() {
        return switch (RANDOM.nextInt(4)) {
            case 0 -> context(Map.of());
            case 1 -> context(Map.of(ID, Set.of("program:", "program:\0", "PROGRAM:" + "x".repeat(99))));
            default -> context(Map.of(ID, Set.of("program:p")));
        };
    }

    @Test
    void nothingThatIsBrokenIsEverThrownAtTheScheduler() throws IOException {
        for (int trial = 0; trial < 1000; trial++) {
            List<SchedulerNode> all = new ArrayList<>();
            for (int i = RANDOM.nextInt(6); i >= 0; i--) {
                all.add(RANDOM.nextBoolean() ? broken("n" + i) : Given.node("n" + i));
            }
            Allocator allocator = new Allocator();
            RMContext context = anyContext();
            allocator.initialize(application(context), null, context);
            ProgramRanking ranking = rankings.of("p");
            List<SchedulerNode> ranked = new ArrayList<>(all.subList(0, RANDOM.nextInt(all.size()) + 1));
            Values values = RANDOM.nextInt(9) == 0 ? null : anyValues(all);
            if (RANDOM.nextInt(9) == 0) {
                ranked.add(null);
            }
            ranking.rank(Optional.of(new Known(watch.settings, values, System.nanoTime())), Map.of("", ranked));

            Iterator<SchedulerNode> found = allocator.getPreferredNodeIterator(candidates(all, RANDOM.nextInt(9) == 0 ? null : ""));
            List<String> met = hosts(found);
            assertTrue(met.size() <= 2 * all.size(), () -> "too many: " + met);
        }
    }
}
