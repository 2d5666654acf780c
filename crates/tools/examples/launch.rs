//! The launcher on its own, for the tests: what `rutter launch` is in the product.

use std::process::ExitCode;

fn main() -> ExitCode {
    rutter_tools::child::launch::main(std::env::args_os().skip(1))
}
