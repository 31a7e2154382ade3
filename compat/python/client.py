"""Every call of URLFrontier, as a Python client makes it, with what it must be told.

Run by `make compat-python` against a fresh server, whose address is in FRONTIER.
"""

import os
import time

import grpc
import urlfrontier_pb2 as pb
import urlfrontier_pb2_grpc as rpc

OK, SKIPPED = pb.AckMessage.OK, pb.AckMessage.SKIPPED
LATER = 2_943_003_600


def info(url, key="", crawl="", **metadata):
    lists = {name: pb.StringList(values=values) for name, values in metadata.items()}
    return pb.URLInfo(url=url, key=key, crawlID=crawl, metadata=lists)


def found(*args, **metadata):
    return pb.URLItem(discovered=pb.DiscoveredURLItem(info=info(*args, **metadata)))


def known(date, *args, **metadata):
    return pb.URLItem(known=pb.KnownURLItem(info=info(*args, **metadata), refetchable_from_date=date))


def put(stub, *items):
    """The statuses of items, by their IDs or URLs."""
    return {ack.ID: ack.status for ack in stub.PutURLs(iter(items))}


def get(stub, **params):
    return [got.url for got in stub.GetURLs(pb.GetParams(**params))]


def same(told, wanted, what):
    assert told == wanted, f"{what}: {told!r} instead of {wanted!r}"


def refused(code, call, request):
    try:
        call(request)
    except grpc.RpcError as error:
        same(error.code(), code, str(request))
    else:
        raise AssertionError(f"{request} was not refused")


def putting(stub):
    items = [
        found("http://a.example/1", source=["seed"]),
        pb.URLItem(ID="mine", discovered=pb.DiscoveredURLItem(info=info("http://a.example/2"))),
        found(""),
        known(0, "http://a.example/done"),
        known(LATER, "http://b.example/later"),
        found("http://c.example/", "my_key", "my_spider"),
    ]
    wanted = {
        "http://a.example/1": OK,
        "mine": OK,
        "": SKIPPED,
        "http://a.example/done": OK,
        "http://b.example/later": OK,
        "http://c.example/": OK,
    }
    same(put(stub, *items), wanted, "PutURLs")
    same(put(stub, items[0]), {"http://a.example/1": SKIPPED}, "PutURLs, known")
    probe = list(stub.PutDiscovered(iter([pb.DiscoveredBatch(ID="probe")])))
    same([(ack.ID, list(ack.statuses)) for ack in probe], [("probe", [])], "PutDiscovered, empty")
    batch = pb.DiscoveredBatch(ID="b", items=[info("http://d.example/"), info("http://a.example/1"), info("")])
    acks = list(stub.PutDiscovered(iter([batch])))
    same([list(ack.statuses) for ack in acks], [[OK, SKIPPED, SKIPPED]], "PutDiscovered")


def looking(stub):
    same(list(stub.ListNodes(pb.Empty()).values)[0].split(":")[0], "compat.example", "ListNodes")
    same(sorted(stub.ListCrawls(pb.Local()).values), ["DEFAULT", "my_spider"], "ListCrawls")
    queues = stub.ListQueues(pb.Pagination())
    same(sorted(queues.values), ["a.example", "b.example", "d.example"], "ListQueues")
    same((queues.size, queues.crawlID), (3, "DEFAULT"), "ListQueues")
    stats = stub.GetStats(pb.QueueWithinCrawlParams())
    same((stats.size, stats.numberOfQueues, stats.counts["completed"]), (4, 3, 1), "GetStats")
    status = stub.GetURLStatus(pb.URLStatusRequest(url="http://a.example/1"))
    same(list(status.known.info.metadata["source"].values), ["seed"], "GetURLStatus")
    assert abs(status.creation_date - time.time()) < 3600, status
    refused(grpc.StatusCode.NOT_FOUND, stub.GetURLStatus, pb.URLStatusRequest(url="http://a.example/none"))
    refused(grpc.StatusCode.INVALID_ARGUMENT, stub.GetURLStatus, pb.URLStatusRequest(url="/none"))
    listed = {item.known.info.url: item.known.refetchable_from_date for item in stub.ListURLs(pb.ListUrlParams())}
    same(len(listed), 5, "ListURLs")
    same((listed["http://a.example/done"], listed["http://b.example/later"]), (0, LATER), "ListURLs")
    filtered = pb.CountUrlParams(filter="A.EXAMPLE", ignoreCase=True)
    same(stub.CountURLs(filtered).value, 3, "CountURLs")
    same(stub.CountURLs(pb.CountUrlParams(filter="A.EXAMPLE")).value, 0, "CountURLs")


def steering(stub):
    stub.SetActive(pb.Active(state=False))
    same(stub.GetActive(pb.Local()).state, False, "GetActive")
    same(get(stub), [], "GetURLs, inactive")
    stub.SetActive(pb.Active(state=True))
    stub.SetLogLevel(pb.LogLevelParams(package="x", level=pb.LogLevelParams.DEBUG))
    stub.BlockQueueUntil(pb.BlockQueueParams(key="a.example", time=int(time.time()) + 3600))
    same(get(stub, key="a.example", crawlID=""), [], "GetURLs, blocked")
    stub.BlockQueueUntil(pb.BlockQueueParams(key="a.example", time=0))
    stub.SetCrawlLimit(pb.CrawlLimitParams(key="a.example", limit=1))
    same(get(stub, key="a.example", crawlID=""), [], "GetURLs, limited")
    stub.SetCrawlLimit(pb.CrawlLimitParams(key="a.example", limit=0))
    refused(grpc.StatusCode.UNKNOWN, stub.SetCrawlLimit, pb.CrawlLimitParams(key="none", limit=1))


def getting(stub):
    same(get(stub, key="a.example"), [], "GetURLs of a queue of no crawl")
    first = get(stub, key="a.example", crawlID="", max_urls_per_queue=1, delay_requestable=36000)
    same(len(first), 1, "GetURLs of a queue")
    same(stub.GetStats(pb.QueueWithinCrawlParams(key="a.example")).inProcess, 1, "GetStats")
    stub.SetDelay(pb.QueueDelayParams(key="a.example", delay_requestable=3600))
    same(get(stub, key="a.example", crawlID=""), [], "GetURLs, too early")
    stub.SetDelay(pb.QueueDelayParams(key="a.example", delay_requestable=0))
    stub.SetDelay(pb.QueueDelayParams(delay_requestable=0))
    rest = get(stub, anyCrawlID=pb.AnyCrawlID(), max_queues=100, max_urls_per_queue=10)
    same(len(rest), 3, "GetURLs of any crawl")
    same(put(stub, known(0, first[0])), {first[0]: OK}, "PutURLs, completed")
    same(stub.GetStats(pb.QueueWithinCrawlParams(key="a.example")).counts["completed"], 2, "GetStats")


def removing(stub):
    same(stub.PurgeURLs(pb.PurgeUrlParams(days=1)).value, 0, "PurgeURLs")
    same(stub.DeleteQueue(pb.QueueWithinCrawlParams(key="a.example")).value, 3, "DeleteQueue")
    same(stub.DeleteCrawl(pb.DeleteCrawlMessage(value="my_spider")).value, 1, "DeleteCrawl")
    same(stub.PurgeURLs(pb.PurgeUrlParams(days=0)).value, 2, "PurgeURLs, all")
    same(stub.DeleteCrawl(pb.DeleteCrawlMessage()).value, 0, "DeleteCrawl")
    same(list(stub.ListCrawls(pb.Local()).values), [], "ListCrawls")


def leaving(stub):
    """As scrapy-url-frontier does: a stream for each item, left after its first acknowledgement."""
    for number in range(20):
        stream = stub.PutURLs(iter([found(f"http://x.example/{number}", crawl="spider")]))
        same(next(stream).status, OK, "PutURLs")
    stream = stub.GetURLs(pb.GetParams(crawlID="spider", max_queues=1, max_urls_per_queue=1))
    same(next(stream).key, "x.example", "GetURLs")
    stream.cancel()


def main():
    with grpc.insecure_channel(os.environ["FRONTIER"]) as channel:
        stub = rpc.URLFrontierStub(channel)
        steps = [putting, looking, steering, getting, removing, leaving]
        for step in steps:
            step(stub)
            print(f"{step.__name__}: as it should be")
        print(f"{len(steps)} passed, 0 failed")


if __name__ == "__main__":
    main()
