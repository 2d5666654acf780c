# `just` lists what there is to do every day.

_default:
    @just --list --unsorted

# Everything that must hold before a change goes in
check:
    ./scripts/test

# Lay out the sources
format:
    cargo fmt --all

# The house rules alone
tidy:
    cargo test -p rutter-core --test tidy

# Search for a violation, and print totals
simulate seeds="100000":
    cargo run --release -p rutter-testkit --bin simulate -- --seeds {{ seeds }}

# Kill the program again and again, and see whether it keeps its promises
torture kills="1000" seed="1":
    cargo build -p rutter
    cargo run -p rutter-testkit --bin torture -- --kills {{ kills }} --seed {{ seed }}

# What the core costs in time and memory
bench:
    cargo bench -p rutter-core

# Line coverage of the core
coverage:
    ./scripts/coverage

# Write golden files and snapshots anew; look at the difference before committing it
goldens:
    UPDATE_GOLDENS=1 INSTA_UPDATE=always cargo test --workspace

# Type the README's commands in a fresh clone with an empty home; `--debug` takes less time
fresh-clone *flags:
    ./scripts/fresh-clone {{ flags }}

# Draw the README's picture from what the demo prints
picture:
    cargo build -p rutter
    ./scripts/picture target/debug/rutter > docs/demo.svg
