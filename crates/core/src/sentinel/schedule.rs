//! When a page is scanned again.
//!
//! interval = 4 h / (velocity × risk factor), within 4 h and 720 h, then moved by a random part
//! so that pages scanned together do not stay together.

use core::fmt;

use jiff::Timestamp;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::Risk;
use super::velocity::Velocity;
use crate::time::Interval;

/// The shortest interval, and the one that velocity and risk divide.
pub const SHORTEST: Interval = Interval::hours(4);
/// The longest interval.
pub const LONGEST: Interval = Interval::hours(720);
/// What a transient error waits for before it doubles.
const FIRST_RETRY: Interval = Interval::hours(1);

/// The settings of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct ScheduleConfig {
    /// The preset that says what was left open.
    pub preset: Option<Preset>,
    /// How much of the interval is random, up or down: 0 turns it off.
    pub jitter: Jitter,
    /// Keep the interval within its bounds after the random part too.
    pub strict_bounds: bool,
    /// The longest interval for each risk, where it is shorter than 720 h.
    pub max_interval: MaxInterval,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self { preset: None, jitter: Jitter(0.1), strict_bounds: false, max_interval: MaxInterval::default() }
    }
}

impl ScheduleConfig {
    /// The preset for monitors that must see every critical change within four hours.
    pub fn sentinel() -> Self {
        Self::default().with(Preset::Sentinel)
    }

    /// The same settings, where a preset says what they leave open. What they say stays.
    #[must_use]
    pub fn with(mut self, preset: Preset) -> Self {
        let Preset::Sentinel = preset;
        self.max_interval.critical = self.max_interval.critical.or(Some(SHORTEST));
        Self { preset: Some(preset), ..self }
    }
}

/// Settings that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Every critical page at least every four hours.
    Sentinel,
}

/// The settings as they are written: what a preset adds is not there yet.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    preset: Option<Preset>,
    jitter: Jitter,
    strict_bounds: bool,
    max_interval: MaxInterval,
}

impl Default for Written {
    fn default() -> Self {
        let ScheduleConfig { preset, jitter, strict_bounds, max_interval } = ScheduleConfig::default();
        Self { preset, jitter, strict_bounds, max_interval }
    }
}

impl From<Written> for ScheduleConfig {
    fn from(Written { preset, jitter, strict_bounds, max_interval }: Written) -> Self {
        let written = Self { preset: None, jitter, strict_bounds, max_interval };
        preset.map_or(written, |preset| written.with(preset))
    }
}

/// A share from 0 to 1, less than the whole.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct Jitter(f64);

impl Jitter {
    /// No random part.
    pub const NONE: Self = Self(0.0);

    /// Accepts a number from 0 up to 1; none for any other, NaN and 1 included.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..1.0).contains(&value).then_some(Self(value))
    }
}

impl<'de> Deserialize<'de> for Jitter {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| {
            serde::de::Error::custom(format_args!("{value} is not a share: at least 0, less than 1"))
        })
    }
}

/// The longest interval for each risk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MaxInterval {
    /// For low risk.
    #[serde(deserialize_with = "at_least_a_minute")]
    pub low: Option<Interval>,
    /// For medium risk.
    #[serde(deserialize_with = "at_least_a_minute")]
    pub medium: Option<Interval>,
    /// For high risk.
    #[serde(deserialize_with = "at_least_a_minute")]
    pub high: Option<Interval>,
    /// For critical risk.
    #[serde(deserialize_with = "at_least_a_minute")]
    pub critical: Option<Interval>,
}

/// A shorter maximum would be a slip, and a server asked without pause would be its victim.
fn at_least_a_minute<'de, D>(deserializer: D) -> Result<Option<Interval>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let max = Option::<Interval>::deserialize(deserializer)?;
    match max {
        Some(short) if short < Interval::MINUTE => {
            Err(serde::de::Error::custom(format_args!("{short} is too short; take at least 1m")))
        }
        max => Ok(max),
    }
}

impl MaxInterval {
    fn of(&self, risk: Risk) -> Option<Interval> {
        match risk {
            Risk::Low => self.low,
            Risk::Medium => self.medium,
            Risk::High => self.high,
            Risk::Critical => self.critical,
        }
    }
}

/// When to scan again, and why then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextScan {
    /// How long from now.
    pub interval: Interval,
    /// The instant itself.
    pub due: Timestamp,
    /// What the interval is made of, in the order it was worked out.
    pub reasons: Vec<Reason>,
}

/// What an interval is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Velocity and risk gave this.
    VelocityAndRisk {
        /// The interval they gave, before any bound.
        interval: Interval,
        /// The risk.
        risk: Risk,
    },
    /// It was shorter than the shortest.
    AtLeast(Interval),
    /// It was longer than the longest.
    AtMost(Interval),
    /// It was longer than what is allowed for this risk.
    MaxForRisk(Risk, Interval),
    /// The random part moved it to this.
    Jittered(Interval),
    /// The page could not be fetched just now; the wait doubles with each failure.
    Transient {
        /// Failures in a row before this one.
        failures: u32,
    },
    /// The page is gone or refused; the normal interval doubles with each failure.
    Dead {
        /// Failures in a row before this one.
        failures: u32,
    },
    /// The server asked for a longer wait.
    RetryAfter(Interval),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VelocityAndRisk { interval, risk } => write!(f, "velocity and {risk} risk give {interval}"),
            Self::AtLeast(bound) => write!(f, "at least {bound}"),
            Self::AtMost(bound) => write!(f, "at most {bound}"),
            Self::MaxForRisk(risk, bound) => write!(f, "at most {bound} for {risk} risk"),
            Self::Jittered(interval) => write!(f, "jitter moves it to {interval}"),
            Self::Transient { failures } => {
                let others = if *failures == 1 { "other" } else { "others" };
                write!(f, "transient error after {failures} {others}: 1h doubled each time")
            }
            Self::Dead { failures } => {
                let errors = if *failures == 1 { "error" } else { "errors" };
                write!(f, "dead page after {failures} other {errors}: normal interval doubled each time")
            }
            Self::RetryAfter(wait) => write!(f, "the server asks for {wait}"),
        }
    }
}

/// What a failed fetch says about the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Time-out, network error, 5xx, 429, 408 or 425: worth trying again soon.
    Transient,
    /// 404, 410 or another 4xx, or a status from 600 on that HTTP does not know (some answer 999 to crawlers): the page
    /// itself is at fault.
    Dead,
}

impl Failure {
    /// What an HTTP status says; none if it is not a failure.
    pub fn of_status(status: u16) -> Option<Self> {
        match status {
            408 | 425 | 429 | 500..=599 => Some(Self::Transient),
            400..=499 | 600.. => Some(Self::Dead),
            _ => None,
        }
    }
}

/// The interval for a page of this velocity and risk without its random part, and its reasons.
pub fn interval(velocity: Velocity, risk: Risk, config: &ScheduleConfig) -> (Interval, Vec<Reason>) {
    let divided = SHORTEST.as_secs_f64() / (velocity.get().max(Velocity::MIN.get()) * risk.factor());
    let raw = Interval::from_secs_f64(divided);
    let mut reasons = vec![Reason::VelocityAndRisk { interval: raw, risk }];
    let mut bounded = raw;
    if bounded < SHORTEST {
        bounded = SHORTEST;
        reasons.push(Reason::AtLeast(SHORTEST));
    }
    if bounded > LONGEST {
        bounded = LONGEST;
        reasons.push(Reason::AtMost(LONGEST));
    }
    if let Some(max) = config.max_interval.of(risk).filter(|max| *max < bounded) {
        bounded = max;
        reasons.push(Reason::MaxForRisk(risk, max));
    }
    (bounded, reasons)
}

/// When to scan a page again after a scan that worked.
///
/// ```
/// # use forager_core::sentinel::{Risk, schedule::{next_scan, Jitter, ScheduleConfig}, velocity::Velocity};
/// let config = ScheduleConfig { jitter: Jitter::NONE, ..ScheduleConfig::default() };
/// let mut rng = rand_pcg::Pcg64::new(1, 1);
/// let next = next_scan(Velocity::default(), Risk::Low, &config, "2024-06-15T08:00:00Z".parse()?, &mut rng);
/// assert_eq!(next.due.to_string(), "2024-06-16T00:00:00Z"); // 16 hours later
/// # Ok::<(), jiff::Error>(())
/// ```
pub fn next_scan(
    velocity: Velocity,
    risk: Risk,
    config: &ScheduleConfig,
    now: Timestamp,
    rng: &mut impl Rng,
) -> NextScan {
    let (plain, mut reasons) = interval(velocity, risk, config);
    let interval = jittered(plain, risk, config, rng);
    if interval != plain {
        reasons.push(Reason::Jittered(interval));
    }
    NextScan { interval, due: interval.after(now), reasons }
}

/// When to try a page again after a fetch that failed, `failures` others in a row before it.
///
/// Nothing learned is touched: pass the velocity as it was. A dead page is never polled more
/// often than a healthy one. `retry_after` is what the server asked for; it lengthens the wait,
/// up to 720 h, and never shortens it.
pub fn next_try(
    failure: Failure,
    failures: u32,
    retry_after: Option<Interval>,
    (velocity, risk): (Velocity, Risk),
    config: &ScheduleConfig,
    now: Timestamp,
) -> NextScan {
    let (base, mut reasons) = match failure {
        Failure::Transient => (FIRST_RETRY, vec![Reason::Transient { failures }]),
        Failure::Dead => {
            let (normal, mut reasons) = interval(velocity, risk, config);
            reasons.push(Reason::Dead { failures });
            (normal, reasons)
        }
    };
    let mut wait = base.doubled(failures, LONGEST);
    if let Some(asked) = retry_after.map(|asked| asked.min(LONGEST)).filter(|asked| *asked > wait) {
        wait = asked;
        reasons.push(Reason::RetryAfter(asked));
    }
    NextScan { interval: wait, due: wait.after(now), reasons }
}

fn jittered(plain: Interval, risk: Risk, config: &ScheduleConfig, rng: &mut impl Rng) -> Interval {
    let Jitter(share) = config.jitter;
    if share == 0.0 {
        return plain;
    }
    let max = config.max_interval.of(risk);
    // A maximum is a promise: there the random part only shortens.
    let highest = if max.is_some() { 0.0 } else { share };
    let moved = Interval::from_secs_f64(plain.as_secs_f64() * (1.0 + rng.random_range(-share..=highest)));
    if config.strict_bounds {
        let longest = max.map_or(LONGEST, |max| max.min(LONGEST));
        return moved.clamp(SHORTEST.min(longest), longest);
    }
    moved
}
