//! How a URL stands with all profiles of a seed at once; what every verdict starts from.

use jiff::Timestamp;

use super::config::{ProfileRules, ScopeOptions};
use super::extent::{Outside, Place, Within};
use crate::time::Interval;
use crate::url::Identity;

/// Profiles of a seed, as [`Scopes::profiles_of`](super::Scopes) yields them.
pub(super) trait Profiles<'c>: Iterator<Item = &'c ProfileRules> + Clone {}

impl<'c, T: Iterator<Item = &'c ProfileRules> + Clone> Profiles<'c> for T {}

/// How a URL stands with the profiles of a seed, disabled ones included.
pub(super) enum Standing<'c> {
    /// There are no profiles.
    NoProfiles,
    /// It is in scope of none; the reason of the first.
    Outside(&'c ProfileRules, Outside<'c>),
    /// It is in scope of disabled profiles only.
    Disabled(&'c ProfileRules),
    /// It is in scope of an active profile.
    Active {
        /// The first of those.
        profile: &'c ProfileRules,
        within: Within,
        /// The active profile with the shortest interval, of those that have one.
        most_frequent: Option<(&'c ProfileRules, Interval)>,
    },
}

impl<'c> Standing<'c> {
    pub(super) fn of(
        profiles: impl Profiles<'c>,
        seed: &Identity,
        url: &Identity,
        place: Place,
        now: Timestamp,
    ) -> Self {
        let mut standing = Self::NoProfiles;
        for profile in profiles {
            standing = standing.with(profile, profile.extent.covers(seed, url, place, now));
        }
        standing
    }

    /// How a list of pages stands: every profile wants it.
    pub(super) fn of_listing(profiles: impl Profiles<'c>) -> Self {
        profiles.fold(Self::NoProfiles, |standing, profile| standing.with(profile, Ok(Within::Listing)))
    }

    fn with(self, profile: &'c ProfileRules, verdict: Result<Within, Outside<'c>>) -> Self {
        let every = profile.every.map(|every| (profile, every));
        match (self, verdict) {
            (Self::Active { profile: first, within, most_frequent }, Ok(_)) if profile.enabled => {
                let shorter = [most_frequent, every].into_iter().flatten().min_by_key(|(_, every)| *every);
                Self::Active { profile: first, within, most_frequent: shorter }
            }
            (active @ Self::Active { .. }, _) => active,
            (_, Ok(within)) if profile.enabled => Self::Active { profile, within, most_frequent: every },
            (disabled @ Self::Disabled(_), _) => disabled,
            (_, Ok(_)) => Self::Disabled(profile),
            (outside @ Self::Outside(..), Err(_)) => outside,
            (Self::NoProfiles, Err(outside)) => Self::Outside(profile, outside),
        }
    }

    pub(super) fn is_in_scope(&self) -> bool {
        matches!(self, Self::Disabled(_) | Self::Active { .. })
    }

    /// The shortest interval of the active profiles that have the URL in scope.
    pub(super) fn every(&self) -> Option<Interval> {
        match self {
            Self::Active { most_frequent: Some((_, every)), .. } => Some(*every),
            _ => None,
        }
    }
}

/// When a postponed URL comes back: after the shortest interval of the profiles, and not at once.
pub(super) fn later<'c>(options: ScopeOptions, profiles: impl Profiles<'c>, now: Timestamp) -> Timestamp {
    let shortest = profiles.filter_map(|profile| profile.every).min().unwrap_or_default();
    shortest.max(options.postpone_at_least).after(now)
}

/// How often a new entry is fetched before it leaves the queue: as often as the profile that
/// wants most; none if one of them never has enough.
pub(super) fn length<'c>(profiles: impl Profiles<'c>) -> Option<u32> {
    profiles.map(|profile| profile.length.unwrap_or(u32::MAX)).max().filter(|&length| length < u32::MAX)
}
