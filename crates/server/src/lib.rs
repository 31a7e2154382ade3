//! The queue of Forager, for clients of URLFrontier.

#[allow(missing_docs, clippy::all, clippy::pedantic, unreachable_pub, reason = "made from the description")]
mod generated {
    tonic::include_proto!("urlfrontier");
}
