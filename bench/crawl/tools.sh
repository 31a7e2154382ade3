#!/usr/bin/env bash
# Installs what Forager's crawler is compared with into the folder TOOLS, with the ordinary clients: Scrapy with
# pip, colly with go, wrk with apt (unpacked there, so that root is not needed). What is there already is kept.
set -euo pipefail
tools=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)

if [ ! -x "$tools/scrapy/bin/scrapy" ]; then
    python3 -m venv "$tools/scrapy"
    "$tools/scrapy/bin/pip" install --quiet --requirement "$here/requirements.txt"
fi

if command -v go > /dev/null; then
    (cd "$here/colly" && GOMODCACHE=$tools/go/modules GOCACHE=$tools/go/cache GOFLAGS=-modcacherw \
        go build -trimpath -buildvcs=false -o "$tools/colly" .)
else
    echo 'colly is left out: there is no Go toolchain (package "golang-go")' >&2
fi

if ! command -v wrk > /dev/null && [ ! -x "$tools/wrk/usr/bin/wrk" ]; then
    if command -v apt-get > /dev/null; then
        mkdir -p "$tools/wrk"
        (cd "$tools/wrk" && apt-get download --quiet wrk libluajit-5.1-2 libluajit-5.1-common > /dev/null &&
            for package in *.deb; do dpkg --extract "$package" .; done && rm ./*.deb)
    else
        echo 'wrk is left out: it is not installed, and there is no apt to get it from' >&2
    fi
fi
