// The site of the benchmark, crawled by colly: main HOSTS PORT.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"

	"github.com/gocolly/colly/v2"
)

func main() {
	hosts, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	authority := func(host int) string { return fmt.Sprintf("127.0.0.%d:%s", host, os.Args[2]) }

	crawler := colly.NewCollector(colly.Async(true))
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
	crawler.OnHTML("a[href]", func(link *colly.HTMLElement) {
		// It says so if the page is known already.
		_ = link.Request.Visit(link.Attr("href"))
	})
	for host := 1; host <= hosts; host++ {
		// Another host may have led there already.
		_ = crawler.Visit("http://" + authority(host) + "/")
	}
	crawler.Wait()
}
