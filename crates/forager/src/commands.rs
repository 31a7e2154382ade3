//! What each command does. Every one reads its lines, asks core or the queue, and prints what it said.

mod apply;
mod audit;
mod catalog;
mod classify;
mod completions;
mod config;
mod crawl;
mod db;
mod discover;
mod events;
mod explain;
mod export;
mod hierarchy;
mod history;
mod host;
mod import;
mod init;
mod job;
mod kept;
mod lease;
mod look;
mod man;
mod manifest;
mod pick;
mod queue;
mod rank;
mod reschedule;
mod run;
mod scope;
mod score;
mod seeds;
mod select;
mod serve;
mod upkeep;
mod url;
mod watch;

use crate::Outcome;
use crate::bench;
use crate::cli::BenchCommand;
use crate::cli::{Command, HostCommand};
use crate::demo;

/// Runs a command.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Crawl(args) => crawl::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Pick(args) => pick::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Robots(args) => look::robots(&args.look),
        Command::Sitemap(args) => look::sitemap(&args.look),
        Command::Links(args) => look::links(&args.look),
        Command::Score(args) => score::run(&args),
        Command::Rank(args) => rank::run(&args),
        Command::Select(args) => select::run(&args),
        Command::Classify(args) => classify::run(&args),
        Command::Reschedule(args) => reschedule::run(&args),
        Command::Manifest(args) => manifest::run(&args),
        Command::Hierarchy(args) => hierarchy::run(&args),
        Command::Scope(args) => scope::run(&args),
        Command::Url(args) => url::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Apply(args) => apply::run(&args),
        Command::Collection(command) => catalog::collection(&command),
        Command::Profile(command) => catalog::profile(&command),
        Command::Seed(command) => catalog::seed(&command),
        Command::Discover(args) => discover::run(&args),
        Command::Lease(args) => lease::lease(&args),
        Command::Complete(args) => lease::complete(&args),
        Command::Extend(args) => lease::extend(&args),
        Command::Release(args) => lease::release(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Queue(command) => queue::run(&command),
        Command::Host(HostCommand::Set(args)) => host::set(&args),
        Command::Job(command) => job::run(&command),
        Command::Events(args) => events::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Backup(args) => upkeep::backup(&args),
        Command::Check(args) => upkeep::check(&args),
        Command::Db(command) => db::run(&command),
        Command::Config(command) => config::run(&command),
        Command::Bench(BenchCommand::Frontier(args)) => bench::run(&args),
        Command::Bench(BenchCommand::Urlfrontier(args)) => bench::urlfrontier(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
