//! The whole program, as its users run it: the real binary, real servers, a real database.
//!
//! One target for all of it: each one more would be linked with everything once more.

#![allow(missing_docs, clippy::unwrap_used, reason = "the names say it, and a test that cannot go on fails")]

mod cases;
mod commands;
mod common;
mod config;
mod crawl;
mod crawl_addresses;
mod crawl_again;
mod crawl_answers;
mod crawl_contact;
mod crawl_dates;
mod crawl_faults;
mod crawl_hosts;
mod crawl_http2;
mod crawl_journal;
mod crawl_log;
mod crawl_looks;
mod crawl_names;
mod crawl_raw;
mod crawl_resume;
mod crawl_secure;
mod crawl_sitemaps;
mod crawl_skipped;
mod crawl_starts;
mod crawl_told;
mod crawl_vectors;
mod crawl_watch;
mod crawl_written;
mod database;
mod database_away;
mod database_crawl;
mod database_exchange;
mod database_history;
mod database_kills;
mod database_secure;
mod database_serve;
mod database_unfit;
mod database_versions;
mod demo;
mod documents;
mod examples;
mod exit_statuses;
mod frontier_catalog;
mod frontier_exchange;
mod frontier_jobs;
mod frontier_session;
mod frontier_streams;
mod serve;
mod serve_commands;
mod serve_faults;
mod serve_files;
mod serve_kill;
mod serve_slow_readers;
mod serve_slow_senders;
mod server;
mod serving;
mod streams;
mod web;
