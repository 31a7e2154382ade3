//! Writing collections, profiles, seeds and what holds for all queues.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;

use super::super::failure::Failure;
use super::super::rows::int;
use super::super::session::Statement;
use crate::catalog::{Catalog, Overall, Rows};

/// Replaces the rows of the catalog that are different.
pub(super) fn set_catalog<'a>(before: &Catalog, after: &Catalog) -> Result<Vec<Statement<'a>>, Failure> {
    const PUT: &str = "INSERT INTO @catalog_rows (kind, number, body) \
        SELECT k, n, b::json FROM unnest($1::int2[], $2::int4[], $3::text[]) w (k, n, b) \
        ON CONFLICT (kind, number) DO UPDATE SET body = excluded.body";
    const REMOVE: &str = "DELETE FROM @catalog_rows c USING unnest($1::int2[], $2::int4[]) w (k, n) \
        WHERE c.kind = w.k AND c.number = w.n";
    const VERSION: &str = "UPDATE @catalog SET version = version + 1, next_collection = $1";
    let (old, new) = (pieces(before.rows())?, pieces(after.rows())?);
    let changed: Vec<_> = new.iter().filter(|(place, body)| old.get(*place) != Some(*body)).collect();
    let gone: Vec<_> = old.keys().filter(|place| !new.contains_key(*place)).collect();
    let kinds = |places: &[&(i16, i32)]| places.iter().map(|(kind, _)| *kind).collect::<Vec<i16>>();
    let numbers = |places: &[&(i16, i32)]| places.iter().map(|(_, number)| *number).collect::<Vec<i32>>();
    let places: Vec<_> = changed.iter().map(|(place, _)| *place).collect();
    let bodies: Vec<String> = changed.iter().map(|(_, body)| (*body).clone()).collect();
    Ok(vec![
        Statement::new(PUT)
            .with(kinds(&places), Type::INT2_ARRAY)
            .with(numbers(&places), Type::INT4_ARRAY)
            .with(bodies, Type::TEXT_ARRAY),
        Statement::new(REMOVE).with(kinds(&gone), Type::INT2_ARRAY).with(numbers(&gone), Type::INT4_ARRAY),
        Statement::new(VERSION).with(int(after.rows().next_collection), Type::INT4),
    ])
}

/// The rows of a catalog by kind and number.
fn pieces(rows: &Rows) -> Result<BTreeMap<(i16, i32), String>, Failure> {
    let text = |body: serde_json::Result<String>| {
        body.map_err(|cause| Failure::Damaged(format!("the catalog cannot be written: {cause}")))
    };
    let mut pieces = BTreeMap::new();
    for row in &rows.collections {
        pieces.insert((0, int(row.number.0)), text(serde_json::to_string(row))?);
    }
    for (place, profile) in rows.profiles.iter().enumerate() {
        pieces.insert((1, i32::try_from(place).unwrap_or(i32::MAX)), text(serde_json::to_string(profile))?);
    }
    for row in &rows.seeds {
        pieces.insert((2, int(row.number.0)), text(serde_json::to_string(row))?);
    }
    if rows.overall != Overall::default() {
        pieces.insert((3, 0), text(serde_json::to_string(&rows.overall))?);
    }
    Ok(pieces)
}
