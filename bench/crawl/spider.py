"""The site of the benchmark, crawled by Scrapy as its manual advises for many hosts, with a JOBDIR."""

import scrapy
from scrapy.linkextractors import LinkExtractor


class Spider(scrapy.Spider):
    name = "bench"
    custom_settings = {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 200,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
        "DOWNLOAD_DELAY": 0,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "WARNING",
    }

    def __init__(self, hosts, port, **arguments):
        super().__init__(**arguments)
        self.seeds = [f"http://127.0.0.{host}:{port}/" for host in range(1, int(hosts) + 1)]
        self.links = LinkExtractor()

    async def start(self):
        # `start_urls` would be fetched once more where a page links to them.
        for url in self.seeds:
            yield scrapy.Request(url)

    def parse(self, response):
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)
