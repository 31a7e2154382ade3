#!/usr/bin/env python3
"""Forager's crawler beside Scrapy, colly and wrk, on one generated site: prints a table, and can write it.

Each run has the site for itself, one after another. Time, processor time and memory are those of the crawler's
process, from start to end, as the system counts them; what was fetched, and what twice, is what the server counted.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
WRK_SECONDS = 10
# wrk asks for the pages of one host, which the server has at hand; "wrk, all hosts" for all that a crawl has to fetch.
GOALS = {"Scrapy": 20.0, "colly": 3.0, "wrk": 0.35, "wrk, all hosts": 0.35}


class Site:
    """The server, in a process of its own."""

    def __init__(self, binaries, hosts, pages, size):
        command = [binaries / "bench_site", str(hosts), str(pages), str(size), "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.hosts, self.pages = hosts, pages
        self.port = json.loads(self.process.stdout.readline())["port"]

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/{path}") as answer:
            return json.load(answer)

    def processor_time(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def commands(options, site):
    """What to run for each crawler that is there, by name."""
    tools, scrapy = options.tools, options.tools / "scrapy/bin/scrapy"
    wrk = shutil.which("wrk") or tools / "wrk/usr/bin/wrk"
    hosts, port = str(site.hosts), str(site.port)
    spider = [scrapy, "runspider", HERE / "spider.py", "-a", f"hosts={hosts}", "-a", f"port={port}"]

    def load(threads, script):
        # As many connections in all as the crawlers may have.
        flags = [f"-t{threads}", f"-c{2 * site.hosts}", f"-d{WRK_SECONDS}s", "-s", HERE / script]
        return [wrk, *flags, f"http://127.0.0.1:{port}/", "--", str(site.pages)]

    found = {
        "wrk": load(2, "pages.lua"),
        # A thread of wrk has one address.
        "wrk, all hosts": load(site.hosts, "hosts.lua"),
        "Forager": [options.binaries / "bench_crawl", hosts, port],
        "colly": [tools / "colly", hosts, port],
        "Scrapy": [*spider, "-s", "JOBDIR=job"],
    }
    wanted = {name: command for name, command in found.items() if name not in options.without}
    return {name: command for name, command in wanted.items() if pathlib.Path(command[0]).exists()}


def measure(name, command, site, options):
    """Runs one crawler to its end."""
    site.ask("reset")
    library = options.tools / "wrk/usr/lib" / f"{platform.machine()}-linux-gnu"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library)} if name.startswith("wrk") else None
    served = site.processor_time()
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        # What it prints is kept for the case that it fails.
        with open(pathlib.Path(folder, "output"), "w+b") as output:
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                output.seek(0)
                sys.exit(f"{name} failed: {output.read().decode(errors='replace')}")
    counts = site.ask("counts")
    return {
        "perSecond": counts["requests"] / seconds,
        "cpu": (usage.ru_utime + usage.ru_stime) / counts["requests"],
        "serverCpu": (site.processor_time() - served) / counts["requests"],
        "memory": usage.ru_maxrss * 1024,
        "load": os.getloadavg()[0],
        "seconds": seconds,
        **counts,
    }


def check(name, run, site):
    """Says what a crawler did not do as it should."""
    if name.startswith("wrk"):
        return
    if run["never"]:
        print(f"{name}: {run['never']} of {site.hosts * site.pages} pages were never fetched", file=sys.stderr)
    if run["hostsWithoutRobots"]:
        print(f"{name}: asked {run['hostsWithoutRobots']} hosts for no robots.txt", file=sys.stderr)


def all_runs(options):
    """The runs of each crawler, in turns."""
    runs = {}
    with contextlib.closing(Site(options.binaries, options.hosts, options.pages, options.bytes)) as site:
        for turn in range(options.rounds):
            for name, command in commands(options, site).items():
                # It takes longer than all the others together, and varies little.
                if turn < options.rounds - 1 and name == "Scrapy":
                    continue
                print(f"{name}, {turn + 1} of {options.rounds} ...", file=sys.stderr)
                run = measure(name, command, site, options)
                check(name, run, site)
                print(f"    {run['perSecond']:,.0f} pages/s", file=sys.stderr)
                runs.setdefault(name, []).append(run)
    return runs


def memory_at(pages, options):
    """The peak memory of Forager on a site of so many pages."""
    print(f"Forager, {pages:,} pages ...", file=sys.stderr)
    site = Site(options.binaries, options.hosts, pages // options.hosts, options.bytes)
    with contextlib.closing(site):
        run = measure("Forager", commands(options, site)["Forager"], site, options)
        check("Forager", run, site)
    return run["memory"]


def middle(runs, key):
    return statistics.median(run[key] for run in runs)


def table(runs):
    yield (
        "| | pages/s | slowest, fastest run | processor time a page | peak memory | pages fetched twice "
        "| most connections to one host |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for name, its in runs.items():
        rates = [run["perSecond"] for run in its]
        twice = "-" if name.startswith("wrk") else f"{middle(its, 'twice'):,.0f}"
        connections = "-" if name.startswith("wrk") else max(run["mostConnections"] for run in its)
        yield (
            f"| {name} | {statistics.median(rates):,.0f} | {min(rates):,.0f}, {max(rates):,.0f} "
            f"| {middle(its, 'cpu') * 1e6:,.0f} µs | {middle(its, 'memory') / 2**20:,.0f} MiB "
            f"| {twice} | {connections} |"
        )


def ratios(runs):
    ours = middle(runs["Forager"], "perSecond")
    cheaper = middle(runs["Forager"], "cpu")
    yield "| Forager to | goal | pages/s | | less processor time a page |"
    yield "|---|--:|--:|---|--:|"
    for name, goal in GOALS.items():
        if name not in runs:
            yield f"| {name} | {goal:g} | - | left out | - |"
            continue
        ratio = ours / middle(runs[name], "perSecond")
        less = middle(runs[name], "cpu") / cheaper
        yield f"| {name} | {goal:g} × | {ratio:.2f} × | {'reached' if ratio >= goal else 'not reached'} | {less:.2f} × |"


def report(options, runs, memory, load):
    """The whole file."""
    loads = [run["load"] for its in runs.values() for run in its]
    date = datetime.date.today().isoformat()
    pages = options.hosts * options.pages
    ours = runs["Forager"]
    yield f"# The crawler, {date}\n"
    yield (
        f"`make bench-crawl`: {options.hosts} hosts on loopback with {options.pages} pages each, {pages:,} in all, "
        f"{options.bytes:,} bytes and 22 links a page; no delay, 2 in flight a host, robots.txt obeyed. "
        f"{os.cpu_count()} cores, the server on the same machine and in one thread; Forager as it is handed out (`--profile dist`). "
        f"The load of the machine was {load:.1f} before the runs began, and {min(loads):.1f} to {max(loads):.1f} at "
        f"their ends{': other work went on beside them, and every rate is lower for it' if load > 0.5 else ''}.\n"
    )
    yield (
        f"The median of {options.rounds} runs in turns (of Scrapy, one run). Pages are requests that the server counted; "
        "time, processor time and memory are those of the whole process. Scrapy keeps its queue in a JOBDIR, "
        "colly in memory (its queue with 2 workers a host; its asynchronous mode is slower); with Forager, what was reported survives the end of the process at any moment. "
        f"wrk reads nothing of what it gets: it asks for the pages of one host again and again over {2 * options.hosts} connections, which "
        "the server has in its caches after the first time; \"wrk, all hosts\" for those of all hosts, over two connections to each, as a crawl "
        "does, with a thread for each host, since a thread of wrk has one address.\n"
    )
    yield from table(runs)
    yield ""
    yield from ratios(runs)
    server = middle(ours, "serverCpu") * 1e6
    yield f"\nThe server took {server:,.0f} µs of processor time a page while Forager crawled, on the same cores."
    if memory:
        sizes = ", ".join(f"{pages:,} pages {peak / 2**20:,.0f} MiB" for pages, peak in memory.items())
        yield f"\nPeak memory of Forager: {sizes}."


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=100, help="at most 250")
    parser.add_argument("--pages", type=int, default=500, help="of each host")
    parser.add_argument("--bytes", type=int, default=20 * 1024, help="of each page")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each but Scrapy")
    parser.add_argument("--memory", type=int, nargs="*", default=[], help="also tell the memory at so many pages")
    parser.add_argument("--without", nargs="*", default=[], choices=list(GOALS), help="leave these out")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="where the others are installed")
    parser.add_argument("--binaries", type=pathlib.Path, required=True, help="where our examples are")
    parser.add_argument("--out", type=pathlib.Path, help="write the report to this folder, under today's date")
    options = parser.parse_args()
    options.tools, options.binaries = options.tools.resolve(), options.binaries.resolve()
    return options


def main():
    options = arguments()
    load = os.getloadavg()[0]
    runs = all_runs(options)
    memory = {pages: memory_at(pages, options) for pages in options.memory}
    text = "\n".join(report(options, runs, memory, load)) + "\n"
    print(text, end="")
    if options.out:
        (options.out / f"{datetime.date.today().isoformat()}-crawl.md").write_text(text)


if __name__ == "__main__":
    main()
