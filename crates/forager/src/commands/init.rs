//! `forager init`

use std::fs::OpenOptions;
use std::io::{self, Write as _};

use anyhow::{Context as _, bail};

use crate::Outcome;
use crate::cli::InitArgs;

const TEMPLATE: &str = include_str!("init.toml");

pub(super) fn run(args: &InitArgs) -> anyhow::Result<Outcome> {
    let path = args.file.display();
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let mut file = match options.open(&args.file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("{path} is there already; take another name, or overwrite it with --force")
        }
        other => other.with_context(|| format!("cannot write {path}"))?,
    };
    file.write_all(TEMPLATE.as_bytes()).with_context(|| format!("cannot write {path}"))?;
    writeln!(io::stdout(), "{path}: written; change it, then run \"forager apply --config {path}\"")?;
    Ok(Outcome::Complete)
}

#[cfg(test)]
mod tests {
    use forager_core::scope::Profile;
    use serde_json::{Value, to_value};

    use super::TEMPLATE;
    use crate::config::Config;

    /// The template with the keys that it shows but does not set.
    fn uncommented(mark: &str) -> String {
        let is_key = |line: &str| {
            let name = line.split_once(" = ").map(|(name, _)| name);
            name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
        };
        let shown = |line: &'static str| match line.strip_prefix(mark) {
            Some(rest) if is_key(rest) || rest.starts_with("[[") => rest,
            _ => line,
        };
        TEMPLATE.lines().map(shown).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_the_template_shows_is_the_default() {
        let text = uncommented("# ");
        let config: Config = toml::from_str(&text).unwrap();
        let default = Config {
            collections: config.collections.clone(),
            profiles: vec![Profile {
                depth: Some(3),
                every: Some("24h".parse().unwrap()),
                ..Profile::new("site", "site")
            }],
            seeds: config.seeds.clone(),
            ..Config::default()
        };
        assert_eq!(to_value(config).unwrap(), to_value(default).unwrap());
        let examples: Config = toml::from_str(&uncommented("#")).unwrap();
        assert_eq!(examples.classify.rows.len(), 1);
        assert_eq!(examples.profiles[0].length, Some(1));
    }

    #[test]
    fn every_key_is_in_the_template() {
        fn visit(value: &Value) {
            let Some(table) = value.as_object() else { return };
            for (key, value) in table {
                let written = [format!("{key} = "), format!("[{key}"), format!(".{key}]")];
                let is_there = written.iter().any(|text| TEMPLATE.contains(text));
                assert!(is_there, "{key}");
                visit(value.get(0).unwrap_or(value));
            }
        }
        visit(&crate::config::example());
    }
}
