"""A scheduler for Scrapy whose requests come from a server of URLFrontier.

Settings: FRONTIER_ADDRESS, such as 127.0.0.1:7071. The crawl has the name of the spider.

A request comes back as it was: with its callback and errback, if they are methods of the spider, its method, headers,
body, cookies, `meta` and `cb_kwargs`, as far as JSON has words for them. It is known by its URL, so that two that differ
in nothing else are one. One that is not to be filtered, such as a retry, is fetched again, whatever became of it before.
"""

import base64
import json
import time

import grpc
import urlfrontier_pb2 as pb
import urlfrontier_pb2_grpc as rpc
from scrapy import Request, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.request import request_from_dict

# For how many seconds nobody else gets a request that was handed out.
HOLD = 36_000
# Where a request that was handed out has its URL and queue, as the server has them.
MARK = "frontier"


class FrontierScheduler(BaseScheduler):
    @classmethod
    def from_crawler(cls, crawler):
        scheduler = cls()
        scheduler.address = crawler.settings["FRONTIER_ADDRESS"]
        crawler.signals.connect(scheduler.downloaded, signal=signals.response_downloaded)
        return scheduler

    def open(self, spider):
        self.spider = spider
        self.channel = grpc.insecure_channel(self.address)
        self.stub = rpc.URLFrontierStub(self.channel)

    def close(self, reason):
        self.channel.close()

    def has_pending_requests(self):
        return self.stub.GetStats(pb.QueueWithinCrawlParams(crawlID=self.spider.name)).size > 0

    def enqueue_request(self, request):
        kept = pb.StringList(values=[json.dumps(self._kept(request))])
        info = pb.URLInfo(url=request.url, crawlID=self.spider.name, metadata={"request": kept})
        if request.dont_filter:
            return self._put(pb.URLItem(known=pb.KnownURLItem(info=info, refetchable_from_date=int(time.time()))))
        return self._put(pb.URLItem(discovered=pb.DiscoveredURLItem(info=info)))

    def next_request(self):
        params = pb.GetParams(
            crawlID=self.spider.name, max_queues=1, max_urls_per_queue=1, delay_requestable=HOLD
        )
        stream = self.stub.GetURLs(params)
        info = next(stream, None)
        stream.cancel()
        return None if info is None else self._request(info)

    def downloaded(self, response, request, spider):
        self.done(request)

    def done(self, request):
        """Nobody is to fetch it again. What did not come from the server, such as robots.txt, is none of its business."""
        if MARK in request.meta:
            url, key = request.meta[MARK]
            info = pb.URLInfo(url=url, key=key, crawlID=self.spider.name)
            self._put(pb.URLItem(known=pb.KnownURLItem(info=info, refetchable_from_date=0)))

    def _kept(self, request):
        """The request as JSON has it."""
        errback = request.errback
        if isinstance(errback, Errback):
            request = request.replace(errback=errback.of_spider)
        kept = request.to_dict(spider=self.spider)
        kept.pop("_class", None)  # what a form is sent as is all in the request, and nobody is to name classes from outside
        kept["body"] = base64.b64encode(kept["body"]).decode()
        headers = kept["headers"].items()
        kept["headers"] = {name.decode("latin-1"): [v.decode("latin-1") for v in values] for name, values in headers}
        kept["meta"] = {name: value for name, value in kept["meta"].items() if name != MARK}
        return kept

    def _request(self, info):
        """The request of a URL; a plain one where another client has put it."""
        if "request" in info.metadata:
            kept = json.loads(info.metadata["request"].values[0])
            kept["body"] = base64.b64decode(kept["body"])
            request = request_from_dict(kept, spider=self.spider)
        else:
            request = Request(info.url)
        request.meta[MARK] = [info.url, info.key]
        return request.replace(errback=Errback(self, request.errback))

    def _put(self, item):
        stream = self.stub.PutURLs(iter([item]))
        status = next(stream).status
        stream.cancel()
        return status == pb.AckMessage.OK


class Errback:
    """What came to nothing, such as what robots.txt forbids, is through with; then the spider has its say."""

    def __init__(self, scheduler, of_spider):
        self.scheduler, self.of_spider = scheduler, of_spider

    def __call__(self, failure):
        self.scheduler.done(failure.request)
        return self.of_spider(failure) if self.of_spider else failure
