//! A server for the conformance suite: `--fixtures` or `--product`.

use anyhow::bail;
use rutter_conformance::fixtures::Fixtures;
use rutter_conformance::{product, stand};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("--fixtures") => stand::serve(Fixtures::new()).await,
        Some("--product") => {
            let folder = tempfile::tempdir()?;
            stand::serve(product::surface(folder.path()).await?).await
        }
        _ => bail!("expected --fixtures or --product"),
    }
}
