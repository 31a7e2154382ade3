//! Pages in HTML, as simple sites write them.

use std::fmt::Write as _;

/// A page that is being written.
///
/// ```
/// # use forager_site::Markup;
/// let page = Markup::new("Boats & oars").nav([("/", "Home")]).text("We rent <both>.").finish();
/// assert!(page.contains("<title>Boats &amp; oars</title>"));
/// assert!(page.contains(r#"<nav><a href="/">Home</a></nav>"#));
/// ```
#[derive(Clone, Debug)]
pub struct Markup {
    head: String,
    header: String,
    main: String,
    footer: String,
}

impl Markup {
    /// A page with a title, which is its headline too.
    pub fn new(title: &str) -> Self {
        let title = escaped(title);
        Self {
            head: format!("<meta charset=\"utf-8\"><title>{title}</title>"),
            header: String::new(),
            main: format!("<h1>{title}</h1>\n"),
            footer: String::new(),
        }
    }

    /// Puts links into the navigation of the header.
    #[must_use]
    pub fn nav<'l>(mut self, links: impl IntoIterator<Item = (&'l str, &'l str)>) -> Self {
        let links: String = links.into_iter().map(|(to, text)| anchor(to, text)).collect();
        let _ = write!(self.header, "<header><nav>{links}</nav></header>");
        self
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        let _ = writeln!(self.main, "<p>{}</p>", escaped(text));
        self
    }

    /// Adds a list of links.
    #[must_use]
    pub fn links<T: AsRef<str>, U: AsRef<str>>(mut self, links: impl IntoIterator<Item = (T, U)>) -> Self {
        self.main.push_str("<ul>\n");
        for (to, text) in links {
            let _ = writeln!(self.main, "<li>{}</li>", anchor(to.as_ref(), text.as_ref()));
        }
        self.main.push_str("</ul>\n");
        self
    }

    /// Adds what is markup already.
    #[must_use]
    pub fn raw(mut self, markup: &str) -> Self {
        self.main.push_str(markup);
        self
    }

    /// Adds to the head what is markup already.
    #[must_use]
    pub fn head(mut self, markup: &str) -> Self {
        self.head.push_str(markup);
        self
    }

    /// Puts links into the footer.
    #[must_use]
    pub fn footer<T: AsRef<str>, U: AsRef<str>>(mut self, links: impl IntoIterator<Item = (T, U)>) -> Self {
        let links: String = links.into_iter().map(|(to, text)| anchor(to.as_ref(), text.as_ref())).collect();
        let _ = write!(self.footer, "<footer>{links}</footer>");
        self
    }

    /// The page.
    pub fn finish(self) -> String {
        let Self { head, header, main, footer } = self;
        format!(
            "<!doctype html>\n<html><head>{head}</head>\n<body>{header}\n<main>{main}</main>\n{footer}</body></html>\n"
        )
    }
}

fn anchor(to: &str, text: &str) -> String {
    format!("<a href=\"{}\">{}</a>", escaped(to), escaped(text))
}

/// A text, safe in markup and in the quotes of an attribute.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            letter => safe.push(letter),
        }
    }
    safe
}
