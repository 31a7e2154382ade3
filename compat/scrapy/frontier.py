"""A scheduler for Scrapy whose requests come from a server of URLFrontier.

Settings: FRONTIER_ADDRESS, such as 127.0.0.1:7071. The crawl has the name of the spider. Requests are known by their
URLs; their callbacks are those of the spider: `parse`, and `failed` for those that came to nothing.
"""

import json

import grpc
import urlfrontier_pb2 as pb
import urlfrontier_pb2_grpc as rpc
from scrapy import Request, signals
from scrapy.core.scheduler import BaseScheduler

# For how many seconds nobody else gets a request that was handed out.
HOLD = 36_000


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
        return self._put(pb.URLItem(discovered=pb.DiscoveredURLItem(info=self._info(request))))

    def next_request(self):
        params = pb.GetParams(
            crawlID=self.spider.name, max_queues=1, max_urls_per_queue=1, delay_requestable=HOLD
        )
        stream = self.stub.GetURLs(params)
        info = next(stream, None)
        stream.cancel()
        if info is None:
            return None
        meta = json.loads(info.metadata["meta"].values[0])
        return Request(info.url, meta=meta, errback=self.spider.failed)

    def downloaded(self, response, request, spider):
        if not request.url.endswith("/robots.txt"):
            self.done(request)

    def done(self, request):
        """Nobody is to fetch it again."""
        self._put(pb.URLItem(known=pb.KnownURLItem(info=self._info(request), refetchable_from_date=0)))

    def _info(self, request):
        kept = {"depth": request.meta.get("depth", 0)}
        metadata = {"meta": pb.StringList(values=[json.dumps(kept)])}
        return pb.URLInfo(url=request.url, crawlID=self.spider.name, metadata=metadata)

    def _put(self, item):
        stream = self.stub.PutURLs(iter([item]))
        status = next(stream).status
        stream.cancel()
        return status == pb.AckMessage.OK
