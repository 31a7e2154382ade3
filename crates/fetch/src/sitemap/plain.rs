//! Sitemaps of one URL a line.

use core::ops::ControlFlow;

use forager_core::url;

use super::findings::{Entry, Findings, List, shown};
use super::{Kind, Trouble};

/// Reads a text. It is a sitemap if any line of it is a whole URL.
pub(super) fn read(text: &str, is_cut: bool, findings: &mut Findings<'_>) {
    let mut has_url = false;
    for (offset, line) in lines(text, is_cut) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if let Err(error) = url::check(line) {
            findings.note(Some(offset), Trouble::BadUrl(error.to_string()));
            continue;
        }
        has_url = true;
        let entry = Entry { list: List::Urls, url: Some(line), date: None, offset };
        if let ControlFlow::Break(()) = findings.add(entry) {
            break;
        }
    }
    if has_url {
        findings.set_kind(Kind::Text);
    } else {
        findings.note(None, Trouble::Unknown(format!("no URL in {:?}", shown(text.trim()))));
    }
}

/// The lines and where they start. If the text was cut, its last line may be half a URL.
fn lines(text: &str, is_cut: bool) -> impl Iterator<Item = (usize, &str)> {
    let end = if is_cut { text.rfind(['\n', '\r']).unwrap_or(0) } else { text.len() };
    let mut offset = 0;
    text[..end].split(['\n', '\r']).map(move |line| {
        let start = offset;
        offset += line.len() + 1;
        (start, line)
    })
}
