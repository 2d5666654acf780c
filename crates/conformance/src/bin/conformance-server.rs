//! A server for the conformance suite: `--fixtures` or `--product`.

use anyhow::bail;
use rutter_conformance::fixtures::ConformanceFixtures;
use rutter_conformance::{product, serving};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (runtime, surface) = product::surface(folder.path()).await?;
    let auth = &runtime.app.auth;
    match std::env::args().nth(1).as_deref() {
        Some("--fixtures") => serving::serve(ConformanceFixtures::new(), auth).await,
        Some("--product") => serving::serve(surface, auth).await,
        _ => bail!("expected --fixtures or --product"),
    }
}
