//! `forager reschedule`

use std::borrow::Cow;

use forager_core::read::null_is_default;
use forager_core::sentinel::Risk;
use forager_core::sentinel::schedule::{Failure, NextScan, ScheduleConfig, next_scan, next_try};
use forager_core::sentinel::velocity::{Evidence, Velocity};
use forager_core::time::Interval;
use jiff::Timestamp;
use rand::SeedableRng as _;
use rand::rngs::SysRng;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::cli::{Preset, RescheduleArgs};
use crate::config::Config;
use crate::input::Input;
use crate::output::Output;
use crate::record::{BadLine, for_each, parse};

const COLUMNS: &[&str] =
    &["nextScanDue", "intervalHours", "changeFrequency", "scanCount", "lastChangedAt", "url", "reasons"];

/// A scan, as it was recorded.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    change_frequency: Velocity,
    scan_count: u64,
    freshness_risk: Risk,
    #[serde(default)]
    content_changed: Option<bool>,
    #[serde(default, deserialize_with = "forager_core::time::deserialize_option")]
    last_changed_at: Option<Timestamp>,
    #[serde(default)]
    status: Option<Status>,
    #[serde(default, deserialize_with = "null_is_default")]
    failures: u32,
    #[serde(default)]
    retry_after: Option<f64>,
}

/// How a fetch ended: with an answer, or without one.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "serde_json::Value")]
enum Status {
    Http(u16),
    Timeout,
    Network,
}

impl TryFrom<serde_json::Value> for Status {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        let http =
            value.as_u64().and_then(|status| u16::try_from(status).ok()).filter(|status| *status >= 100);
        match (http, value.as_str()) {
            (Some(status), _) => Ok(Self::Http(status)),
            (_, Some("timeout")) => Ok(Self::Timeout),
            (_, Some("network")) => Ok(Self::Network),
            _ => Err(format!("{value} is not an HTTP status, \"timeout\" or \"network\"")),
        }
    }
}

impl Status {
    fn failure(self) -> Option<Failure> {
        match self {
            Self::Http(status) => Failure::of_status(status),
            Self::Timeout | Self::Network => Some(Failure::Transient),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    url: &'a str,
    change_frequency: Velocity,
    scan_count: u64,
    last_changed_at: Option<Timestamp>,
    interval_hours: f64,
    next_scan_due: Timestamp,
    reasons: Vec<String>,
}

pub(super) fn run(args: &RescheduleArgs) -> anyhow::Result<Outcome> {
    let now = args.now.get();
    let settings = settings(args)?;
    let mut rng = match args.seed {
        Some(seed) => Pcg64::seed_from_u64(seed),
        None => Pcg64::try_from_rng(&mut SysRng)?,
    };
    let mut output = Output::new(args.common.format, COLUMNS);
    for_each(Input::open(&args.common.files)?, &mut output, |line, output| {
        let scan: Record = parse(line)?;
        let (evidence, next) = reschedule(&scan, &settings, now, &mut rng)?;
        Ok(output.row(&row(&scan, evidence, &next))?)
    })
}

fn settings(args: &RescheduleArgs) -> anyhow::Result<ScheduleConfig> {
    let configured = Config::load(&args.config)?.sentinel;
    let mut settings = match args.preset {
        Some(Preset::Sentinel) => ScheduleConfig::sentinel(),
        None => configured,
    };
    settings.jitter = args.jitter.unwrap_or(settings.jitter);
    Ok(settings)
}

fn reschedule(
    scan: &Record<'_>,
    settings: &ScheduleConfig,
    now: Timestamp,
    rng: &mut Pcg64,
) -> Result<(Evidence, NextScan), BadLine> {
    forager_core::url::check(&scan.url).map_err(|error| BadLine::field("url", error))?;
    let known = Evidence {
        velocity: scan.change_frequency,
        scan_count: scan.scan_count,
        last_changed_at: scan.last_changed_at,
    };
    let risk = scan.freshness_risk;
    if let Some(failure) = scan.status.and_then(Status::failure) {
        let retry_after = retry_after(scan)?;
        let next = next_try(failure, scan.failures, retry_after, (known.velocity, risk), settings, now);
        return Ok((known, next));
    }
    let missing = || BadLine::field("contentChanged", "missing, and no status says that the scan failed");
    let evidence = known.after_scan(scan.content_changed.ok_or_else(missing)?, now);
    let next = next_scan(evidence.velocity, risk, settings, now, rng);
    Ok((evidence, next))
}

fn retry_after(scan: &Record<'_>) -> Result<Option<Interval>, BadLine> {
    match scan.retry_after {
        Some(seconds) if seconds < 0.0 => {
            Err(BadLine::field("retryAfter", format_args!("{seconds} is not a number of seconds")))
        }
        seconds => Ok(seconds.map(Interval::from_secs_f64)),
    }
}

fn row<'a>(scan: &'a Record<'_>, evidence: Evidence, next: &NextScan) -> Row<'a> {
    Row {
        url: &scan.url,
        change_frequency: evidence.velocity,
        scan_count: evidence.scan_count,
        last_changed_at: evidence.last_changed_at,
        // A ten-thousandth of an hour is a third of a second.
        interval_hours: (next.interval.as_hours_f64() * 1e4).round() / 1e4,
        next_scan_due: next.due,
        reasons: next.reasons.iter().map(ToString::to_string).collect(),
    }
}
