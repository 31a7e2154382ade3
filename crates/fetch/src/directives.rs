//! What a page says about being indexed and followed: `X-Robots-Tag` and `meta robots`.
