import crawlercommons.urlfrontier.URLFrontierGrpc;
import crawlercommons.urlfrontier.URLFrontierGrpc.URLFrontierBlockingStub;
import crawlercommons.urlfrontier.Urlfrontier.AckMessage;
import crawlercommons.urlfrontier.Urlfrontier.Active;
import crawlercommons.urlfrontier.Urlfrontier.AnyCrawlID;
import crawlercommons.urlfrontier.Urlfrontier.BlockQueueParams;
import crawlercommons.urlfrontier.Urlfrontier.CountUrlParams;
import crawlercommons.urlfrontier.Urlfrontier.CrawlLimitParams;
import crawlercommons.urlfrontier.Urlfrontier.DeleteCrawlMessage;
import crawlercommons.urlfrontier.Urlfrontier.DiscoveredURLItem;
import crawlercommons.urlfrontier.Urlfrontier.Empty;
import crawlercommons.urlfrontier.Urlfrontier.GetParams;
import crawlercommons.urlfrontier.Urlfrontier.KnownURLItem;
import crawlercommons.urlfrontier.Urlfrontier.ListUrlParams;
import crawlercommons.urlfrontier.Urlfrontier.Local;
import crawlercommons.urlfrontier.Urlfrontier.LogLevelParams;
import crawlercommons.urlfrontier.Urlfrontier.Pagination;
import crawlercommons.urlfrontier.Urlfrontier.QueueDelayParams;
import crawlercommons.urlfrontier.Urlfrontier.QueueList;
import crawlercommons.urlfrontier.Urlfrontier.QueueWithinCrawlParams;
import crawlercommons.urlfrontier.Urlfrontier.Stats;
import crawlercommons.urlfrontier.Urlfrontier.StringList;
import crawlercommons.urlfrontier.Urlfrontier.URLInfo;
import crawlercommons.urlfrontier.Urlfrontier.URLItem;
import crawlercommons.urlfrontier.Urlfrontier.URLStatusRequest;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Every call of URLFrontier 2.5, as StormCrawler and the Java tools make them, with what they must be told.
 *
 * <p>Run by `make compat-java` against a fresh server, whose address is in FRONTIER.
 */
public final class Client {
    private static final long LATER = 2_943_003_600L;

    private final ManagedChannel channel;
    private final URLFrontierBlockingStub stub;

    private Client(String address) {
        channel = ManagedChannelBuilder.forTarget(address).usePlaintext().build();
        stub = URLFrontierGrpc.newBlockingStub(channel).withWaitForReady();
    }

    public static void main(String[] args) throws Exception {
        Client client = new Client(System.getenv("FRONTIER"));
        try {
            client.putting();
            client.looking();
            client.steering();
            client.getting();
            client.many();
            client.removing();
            System.out.println("6 passed, 0 failed");
        } finally {
            client.channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
        }
    }

    private static void same(Object told, Object wanted, String what) {
        if (!Objects.equals(told, wanted)) {
            throw new AssertionError(what + ": " + told + " instead of " + wanted);
        }
    }

    private static void refused(Status.Code code, Runnable call) {
        try {
            call.run();
        } catch (StatusRuntimeException error) {
            same(error.getStatus().getCode(), code, "the status of a refusal");
            return;
        }
        throw new AssertionError("a call was not refused that had to be: " + code);
    }

    private static URLInfo.Builder info(String url, String key, String crawl) {
        return URLInfo.newBuilder().setUrl(url).setKey(key).setCrawlID(crawl);
    }

    private static URLItem found(URLInfo.Builder info) {
        return URLItem.newBuilder().setDiscovered(DiscoveredURLItem.newBuilder().setInfo(info)).build();
    }

    private static URLItem known(URLInfo.Builder info, long date) {
        KnownURLItem.Builder item = KnownURLItem.newBuilder().setInfo(info).setRefetchableFromDate(date);
        return URLItem.newBuilder().setKnown(item).build();
    }

    /** The statuses of items, by their IDs or URLs, when the server has closed the stream. */
    private Map<String, AckMessage.Status> put(List<URLItem> items) throws InterruptedException {
        Map<String, AckMessage.Status> told = new TreeMap<>();
        CountDownLatch closed = new CountDownLatch(1);
        List<Throwable> errors = new ArrayList<>();
        StreamObserver<URLItem> stream =
                URLFrontierGrpc.newStub(channel).putURLs(new StreamObserver<AckMessage>() {
                    @Override
                    public void onNext(AckMessage ack) {
                        told.put(ack.getID(), ack.getStatus());
                    }

                    @Override
                    public void onError(Throwable error) {
                        errors.add(error);
                        closed.countDown();
                    }

                    @Override
                    public void onCompleted() {
                        closed.countDown();
                    }
                });
        items.forEach(stream::onNext);
        stream.onCompleted();
        same(closed.await(60, TimeUnit.SECONDS), true, "the stream is closed");
        same(errors, List.of(), "errors of the stream");
        return told;
    }

    private List<String> get(GetParams.Builder params) {
        List<String> urls = new ArrayList<>();
        stub.getURLs(params.build()).forEachRemaining(info -> urls.add(info.getUrl()));
        return urls;
    }

    private static GetParams.Builder keyed(String key) {
        return GetParams.newBuilder().setKey(key).setCrawlID("DEFAULT");
    }

    private Stats stats(String crawl, String key) {
        return stub.getStats(QueueWithinCrawlParams.newBuilder().setCrawlID(crawl).setKey(key).build());
    }

    private void putting() throws InterruptedException {
        URLInfo.Builder withMetadata = info("http://a.example/1", "a.example", "DEFAULT")
                .putMetadata("depth", StringList.newBuilder().addValues("1").addValues("x").build());
        List<URLItem> items = List.of(
                found(withMetadata).toBuilder().setID("http://a.example/1").build(),
                found(info("http://a.example/2", "a.example", "DEFAULT")),
                found(info("", "", "")),
                known(info("http://a.example/done", "", ""), 0),
                known(info("http://b.example/later", "", ""), LATER),
                found(info("http://c.example/", "_DEFAULT_", "my_crawl")));
        Map<String, AckMessage.Status> told = put(items);
        same(told.size(), 6, "acknowledgements");
        same(told.remove(""), AckMessage.Status.SKIPPED, "an item without a URL");
        same(new TreeSet<>(told.values()), new TreeSet<>(List.of(AckMessage.Status.OK)), "the others");
        told = put(List.of(items.get(0)));
        same(told, Map.of("http://a.example/1", AckMessage.Status.SKIPPED), "an item that is known");
    }

    private void looking() {
        same(stub.listNodes(Empty.getDefaultInstance()).getValues(0).startsWith("compat.example:"), true, "ListNodes");
        List<String> crawls = stub.listCrawls(Local.newBuilder().setLocal(true).build()).getValuesList();
        same(new TreeSet<>(crawls), new TreeSet<>(List.of("DEFAULT", "my_crawl")), "ListCrawls");
        QueueList queues = stub.listQueues(Pagination.newBuilder().setIncludeInactive(true).setSize(10_000).build());
        same(new TreeSet<>(queues.getValuesList()), new TreeSet<>(List.of("a.example", "b.example")), "ListQueues");
        Stats stats = stats("", "");
        same(List.of(stats.getSize(), stats.getNumberOfQueues(), stats.getCountsOrThrow("completed")), List.of(3L, 2L, 1L), "GetStats");
        same(stats.getCrawlID(), "DEFAULT", "GetStats");
        same(stats("none", "none").getSize(), 0L, "GetStats of nothing");
        URLItem item = stub.getURLStatus(URLStatusRequest.newBuilder().setUrl("http://a.example/1").build());
        same(item.getKnown().getInfo().getMetadataOrThrow("depth").getValuesList(), List.of("1", "x"), "GetURLStatus");
        refused(Status.Code.NOT_FOUND, () -> stub.getURLStatus(URLStatusRequest.newBuilder().setUrl("http://a.example/none").build()));
        Iterator<URLItem> listed = stub.listURLs(ListUrlParams.newBuilder().setSize(Integer.MAX_VALUE).build());
        Map<String, Long> dates = new TreeMap<>();
        listed.forEachRemaining(one -> dates.put(one.getKnown().getInfo().getUrl(), one.getKnown().getRefetchableFromDate()));
        same(dates.size(), 4, "ListURLs");
        same(List.of(dates.get("http://a.example/done"), dates.get("http://b.example/later")), List.of(0L, LATER), "ListURLs");
        same(stub.countURLs(CountUrlParams.newBuilder().setFilter("A.EXAMPLE").setIgnoreCase(true).build()).getValue(), 3L, "CountURLs");
        same(stub.countURLs(CountUrlParams.newBuilder().setFilter("A.EXAMPLE").build()).getValue(), 0L, "CountURLs");
    }

    private void steering() {
        stub.setActive(Active.newBuilder().setState(false).build());
        same(stub.getActive(Local.getDefaultInstance()).getState(), false, "GetActive");
        same(get(GetParams.newBuilder()), List.of(), "GetURLs, inactive");
        stub.setActive(Active.newBuilder().setState(true).build());
        stub.setLogLevel(LogLevelParams.newBuilder().setPackage("x").setLevel(LogLevelParams.Level.WARN).build());
        long until = System.currentTimeMillis() / 1000 + 3600;
        stub.blockQueueUntil(BlockQueueParams.newBuilder().setKey("a.example").setTime(until).build());
        same(get(keyed("a.example")), List.of(), "GetURLs, blocked");
        stub.blockQueueUntil(BlockQueueParams.newBuilder().setKey("a.example").setTime(0).build());
        stub.setCrawlLimit(CrawlLimitParams.newBuilder().setKey("a.example").setLimit(1).build());
        same(get(keyed("a.example")), List.of(), "GetURLs, limited");
        stub.setCrawlLimit(CrawlLimitParams.newBuilder().setKey("a.example").setLimit(0).build());
        refused(Status.Code.UNKNOWN, () -> stub.setCrawlLimit(CrawlLimitParams.newBuilder().setKey("none").setLimit(1).build()));
    }

    private void getting() throws InterruptedException {
        same(get(GetParams.newBuilder().setKey("a.example")), List.of(), "GetURLs of a queue of no crawl");
        List<String> first = get(keyed("a.example").setMaxUrlsPerQueue(1).setDelayRequestable(600));
        same(first.size(), 1, "GetURLs of a queue");
        same(stats("", "a.example").getInProcess(), 1, "GetStats");
        stub.setDelay(QueueDelayParams.newBuilder().setKey("a.example").setDelayRequestable(300).build());
        same(get(keyed("a.example").setMaxUrlsPerQueue(2)), List.of(), "GetURLs, too early");
        stub.setDelay(QueueDelayParams.newBuilder().setKey("a.example").setDelayRequestable(0).build());
        GetParams.Builder any = GetParams.newBuilder().setAnyCrawlID(AnyCrawlID.getDefaultInstance());
        same(get(any.setMaxUrlsPerQueue(10).setMaxQueues(10)).size(), 2, "GetURLs of any crawl");
        same(put(List.of(known(info(first.get(0), "a.example", "DEFAULT"), 0))), Map.of(first.get(0), AckMessage.Status.OK), "a URL that is completed");
        same(stats("", "a.example").getCountsOrThrow("completed"), 2L, "GetStats");
    }

    /** More than fits into the windows of the connection. */
    private void many() throws InterruptedException {
        List<URLItem> items = new ArrayList<>();
        for (int number = 0; number < 20_000; number++) {
            items.add(found(info("http://h" + number % 100 + ".example/" + number, "", "many")));
        }
        same(put(items).size(), 20_000, "acknowledgements of many items");
        same(stats("many", "").getSize(), 20_000L, "GetStats of many items");
        same(get(GetParams.newBuilder().setCrawlID("many").setMaxUrlsPerQueue(10)).size(), 1000, "GetURLs of many");
    }

    private void removing() {
        same(stub.deleteQueue(QueueWithinCrawlParams.newBuilder().setKey("a.example").build()).getValue(), 3L, "DeleteQueue");
        same(stub.deleteCrawl(DeleteCrawlMessage.newBuilder().setValue("my_crawl").build()).getValue(), 1L, "DeleteCrawl");
        same(stub.deleteCrawl(DeleteCrawlMessage.newBuilder().setValue("many").build()).getValue(), 20_000L, "DeleteCrawl");
        same(stub.deleteCrawl(DeleteCrawlMessage.getDefaultInstance()).getValue(), 1L, "DeleteCrawl without a name");
        same(stub.listCrawls(Local.getDefaultInstance()).getValuesCount(), 0, "ListCrawls");
    }
}
