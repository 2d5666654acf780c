//! The one place that chooses the cryptography behind TLS: ring.
//!
//! reqwest is built without a provider of its own, so a client has to come from here, in tests too.

use reqwest::ClientBuilder;
use rustls::crypto::ring;
use std::sync::Once;

/// Begins an HTTP client that can speak TLS.
pub fn client_builder() -> ClientBuilder {
    install_provider();
    ClientBuilder::new()
}

/// Makes ring the provider of this process, for libraries that build clients by themselves.
pub fn install_provider() {
    static INSTALLED: Once = Once::new();
    // A program that embeds Rutter may have chosen another one first; that choice stands.
    INSTALLED.call_once(|| drop(ring::default_provider().install_default()));
}
