//! Sitemaps: XML, indexes, text, RSS and Atom.
