//! The color theme of a browser, kept in a cookie.

use axum::http::HeaderMap;
use rutter_api::admit::named_cookie;
use std::fmt;

pub(super) const COOKIE_NAME: &str = "rutter_theme";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorTheme {
    /// The system's theme.
    #[default]
    Auto,
    Light,
    Dark,
}

impl ColorTheme {
    pub(super) fn parse(text: &str) -> Option<ColorTheme> {
        [ColorTheme::Auto, ColorTheme::Light, ColorTheme::Dark].into_iter().find(|theme| theme.to_string() == text)
    }

    pub(super) fn of(headers: &HeaderMap) -> ColorTheme {
        named_cookie(headers, COOKIE_NAME).and_then(ColorTheme::parse).unwrap_or_default()
    }

    pub fn next(&self) -> ColorTheme {
        match self {
            ColorTheme::Auto => ColorTheme::Dark,
            ColorTheme::Dark => ColorTheme::Light,
            ColorTheme::Light => ColorTheme::Auto,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            ColorTheme::Auto => "◐ Auto",
            ColorTheme::Light => "○ Light",
            ColorTheme::Dark => "● Dark",
        }
    }
}

impl fmt::Display for ColorTheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ColorTheme::Auto => "auto",
            ColorTheme::Light => "light",
            ColorTheme::Dark => "dark",
        })
    }
}
