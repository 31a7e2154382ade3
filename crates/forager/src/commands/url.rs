//! `forager url`

use forager_core::url::{FetchUrl, Identity, IdentityOptions, Surt};
use serde::Serialize;

use crate::Outcome;
use crate::cli::UrlArgs;
use crate::input::Input;
use crate::output::{self, Output};
use crate::record::{BadLine, for_each, text};

const COLUMNS: &[&str] = &["fetch", "identity", "surt", "host", "registrableDomain"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    url: &'a str,
    fetch: &'a FetchUrl,
    identity: &'a Identity,
    surt: Surt,
    host: &'a str,
    registrable_domain: Option<&'a str>,
}

pub(super) fn run(args: &UrlArgs) -> anyhow::Result<Outcome> {
    let options = IdentityOptions { sort_query: args.sort_query, strip_params: args.strip_param.clone() };
    let mut output = Output::new(args.format, COLUMNS);
    if args.urls.is_empty() {
        return for_each(Input::open(&[])?, &mut output, |line, output| {
            let text = text(line)?;
            Ok(print(text, &parse(text)?, &options, output)?)
        });
    }
    let mut outcome = Outcome::Complete;
    for text in &args.urls {
        match parse(text) {
            Ok(url) => print(text, &url, &options, &mut output)?,
            Err(bad) => {
                output::complain(format_args!("{bad}"));
                outcome = Outcome::SomeBad;
            }
        }
    }
    output.flush()?;
    Ok(outcome)
}

fn parse(text: &str) -> Result<FetchUrl, BadLine> {
    FetchUrl::parse(text).map_err(|error| BadLine::field("url", error))
}

fn print(text: &str, url: &FetchUrl, options: &IdentityOptions, output: &mut Output) -> anyhow::Result<()> {
    let identity = url.identity(options);
    output.row(&Row {
        url: text,
        fetch: url,
        surt: identity.surt(),
        host: url.host_key(),
        registrable_domain: url.registrable_domain(),
        identity: &identity,
    })
}
