//! A server for the conformance suite: `--fixtures` or `--product`.

use anyhow::bail;
use rutter_conformance::fixtures::ConformanceFixtures;
use rutter_conformance::{product, serving};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("--fixtures") => serving::serve(ConformanceFixtures::new()).await,
        Some("--product") => {
            let folder = tempfile::tempdir()?;
            let (_runtime, surface) = product::surface(folder.path()).await?;
            serving::serve(surface).await
        }
        _ => bail!("expected --fixtures or --product"),
    }
}
