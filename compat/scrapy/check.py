"""Crawls the demonstration web with Scrapy, and checks from both sides what was fetched.

Run by `make compat-scrapy` against a fresh server, whose address is in FRONTIER: check.py SITE
"""

import collections
import json
import os
import subprocess
import sys
from urllib.parse import urlsplit

import grpc
import scrapy
import urlfrontier_pb2 as pb
import urlfrontier_pb2_grpc as rpc
from frontier import FrontierScheduler
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from scrapy.resolver import CachingThreadedResolver
from twisted.internet import defer

NAME = "demo_spider"
HOSTS = ["shop.demo", "news.demo"]


class Resolver(CachingThreadedResolver):
    """The names of the demonstration web exist nowhere else."""

    addresses = {}

    def getHostByName(self, name, timeout=None):
        if name in self.addresses:
            return defer.succeed(self.addresses[name])
        return defer.fail(OSError(f"{name} is not of the demonstration"))


class DemoSpider(scrapy.Spider):
    name = NAME
    handle_httpstatus_all = True

    async def start(self):
        for url in self.homes:
            yield scrapy.Request(url)

    def parse(self, response):
        if response.status != 200 or not isinstance(response, scrapy.http.HtmlResponse):
            return
        for link in LinkExtractor().extract_links(response):
            if urlsplit(link.url).hostname in HOSTS:
                yield scrapy.Request(link.url)


class OddSpider(scrapy.Spider):
    """One whose requests are handed to the scheduler one by one."""

    name = "odd"

    def other(self, response, word=None):
        pass

    def failed(self, failure):
        self.failures.append(failure)


def check_requests(frontier):
    """What is put comes back as it was, as often as it is meant to be fetched."""
    spider = OddSpider()
    spider.failures = []
    scheduler = FrontierScheduler()
    scheduler.address = frontier
    scheduler.open(spider)
    made = {"method": "POST", "body": b"\x00\xff", "headers": {"X-A": ["1", "2"]}, "priority": 7}
    made |= {"callback": spider.other, "errback": spider.failed, "cb_kwargs": {"word": 1}, "meta": {"depth": 2}}
    request = scrapy.Request("http://odd.demo/a", **made)
    assert scheduler.enqueue_request(request) and not scheduler.enqueue_request(request), "known by its URL"
    got = scheduler.next_request()
    assert (got.url, got.method, got.body, got.callback) == (request.url, "POST", b"\x00\xff", spider.other), got
    assert (got.headers, got.cb_kwargs, got.priority) == (request.headers, {"word": 1}, 7), got.headers
    assert got.meta["depth"] == 2, got.meta
    scheduler.downloaded(None, got, spider)
    assert scheduler.next_request() is None and not scheduler.has_pending_requests(), "it is through with"
    assert not scheduler.enqueue_request(request)
    for attempt in range(2):
        assert scheduler.enqueue_request(got.replace(dont_filter=True)), "a retry"
        got = scheduler.next_request()
        assert (got.body, got.callback) == (b"\x00\xff", spider.other), attempt
        scheduler.downloaded(None, got, spider)
    assert scheduler.enqueue_request(got.replace(dont_filter=True)), "once more"
    got = scheduler.next_request()
    got.errback(Failure(got))
    assert len(spider.failures) == 1 and not scheduler.has_pending_requests(), "what failed is through with"
    plain = scrapy.Request("http://odd.demo/b")
    assert scheduler.enqueue_request(plain)
    got = scheduler.next_request()
    assert got.errback(Failure(plain)) is not None, "the spider has nothing to say to it"
    assert scheduler.has_pending_requests(), "a failure of what was not handed out ends nothing"
    scheduler.close("")


class Failure:
    def __init__(self, request):
        self.request = request


def crawl(told, frontier):
    Resolver.addresses = told["hosts"]
    DemoSpider.homes = [f"http://{host}:{told['port']}/" for host in HOSTS]
    process = CrawlerProcess(
        {
            "SCHEDULER": "frontier.FrontierScheduler",
            "FRONTIER_ADDRESS": frontier,
            "TWISTED_DNS_RESOLVER": "__main__.Resolver",
            "ROBOTSTXT_OBEY": True,
            "RETRY_ENABLED": False,
            "REDIRECT_ENABLED": False,
            "DOWNLOAD_DELAY": 0,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "WARNING",
        }
    )
    process.crawl(DemoSpider)
    process.start()


def check(seen, port, frontier):
    pages = [f"{one['host']}{one['path']}" for one in seen if one["path"] != "/robots.txt"]
    twice = [page for page, count in collections.Counter(pages).items() if count > 1]
    assert not twice, f"fetched more than once: {twice}"
    hosts = {one["host"] for one in seen}
    assert hosts == set(HOSTS), hosts
    assert len(pages) > 50, f"only {len(pages)} pages were fetched"
    assert not [page for page in pages if page.startswith("shop.demo/cart")], "robots.txt forbids it"
    with grpc.insecure_channel(frontier) as channel:
        stub = rpc.URLFrontierStub(channel)
        stats = stub.GetStats(pb.QueueWithinCrawlParams(crawlID=NAME))
        assert (stats.size, stats.inProcess) == (0, 0), stats
        listed = stub.ListURLs(pb.ListUrlParams(crawlID=NAME, size=100_000))
        urls = {item.known.info.url.split("//")[1].replace(f":{port}", "") for item in listed}
    missing = set(pages) - urls
    assert not missing, f"fetched, and not in the queue: {missing}"
    print(f"{len(pages)} pages were fetched once each, {stats.counts['completed']} URLs are through")
    print("1 passed, 0 failed")


def main():
    frontier = os.environ["FRONTIER"]
    site = subprocess.Popen([sys.argv[1]], stdout=subprocess.PIPE, text=True)
    try:
        told = json.loads(site.stdout.readline())
        with grpc.insecure_channel(frontier) as channel:
            rpc.URLFrontierStub(channel).SetDelay(pb.QueueDelayParams(delay_requestable=0))
        check_requests(frontier)
        crawl(told, frontier)
        site.terminate()
        check(json.loads(site.stdout.readline()), told["port"], frontier)
    finally:
        site.kill()
        site.wait()


if __name__ == "__main__":
    main()
