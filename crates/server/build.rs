//! Makes the messages and the service from their description.

use std::error::Error;
use std::path::PathBuf;

use prost::Message as _;

const DESCRIPTION: &str = "proto/urlfrontier.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={DESCRIPTION}");
    let files = protox::compile([DESCRIPTION], ["proto"])?;
    // For clients that ask the server what it offers.
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("urlfrontier.bin"), files.encode_to_vec())?;
    let mut messages = tonic_prost_build::Config::new();
    messages.enable_type_names();
    tonic_prost_build::configure()
        // Maps come in order, so that what is kept of them is the same every time.
        .btree_map(".")
        // Messages are read with a bound on what they become, which goes by their names.
        .codec_path("crate::codec::BoundedCodec")
        .compile_fds_with_config(files, messages)?;
    Ok(())
}
