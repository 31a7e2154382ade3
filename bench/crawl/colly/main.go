// The site of the benchmark, crawled by colly: main HOSTS PORT.
//
// With its queue: two workers for each host, each of which fetches and reads one page at a time. In its
// asynchronous mode nothing limits how many pages are read at once, and on a server as fast as this one it takes
// gigabytes of memory and half as long again.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"
)

const longestQueue = 100_000_000

func main() {
	hosts, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	authority := func(host int) string { return fmt.Sprintf("127.0.0.%d:%s", host, os.Args[2]) }

	crawler := colly.NewCollector()
	crawler.IgnoreRobotsTxt = false
	// Keeps a connection for each request that may be under way; the default would close half of them.
	crawler.WithTransport(&http.Transport{MaxIdleConns: 2 * hosts, MaxIdleConnsPerHost: 2})
	// A rule limits all hosts that it matches together, so that each host has its own.
	for host := 1; host <= hosts; host++ {
		rule := &colly.LimitRule{DomainGlob: authority(host), Parallelism: 2}
		if err := crawler.Limit(rule); err != nil {
			log.Fatal(err)
		}
	}
	pages, err := queue.New(2*hosts, &queue.InMemoryQueueStorage{MaxSize: longestQueue})
	if err != nil {
		log.Fatal(err)
	}
	crawler.OnHTML("a[href]", func(link *colly.HTMLElement) {
		url := link.Request.AbsoluteURL(link.Attr("href"))
		// It would be turned away when its turn comes; this keeps the queue short.
		if known, _ := crawler.HasVisited(url); !known {
			_ = pages.AddURL(url)
		}
	})
	for host := 1; host <= hosts; host++ {
		_ = pages.AddURL("http://" + authority(host) + "/")
	}
	if err := pages.Run(crawler); err != nil {
		log.Fatal(err)
	}
}
