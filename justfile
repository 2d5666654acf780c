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
    cargo test -p rutter-core --test all tidy::

# Search for a violation, and print totals
simulate seeds="100000" first="0":
    cargo run --release -p rutter-testkit --bin simulate -- --first {{ first }} --seeds {{ seeds }}

# Show that the simulator notices deliberate mistakes: all, or those named
mutants *names:
    ./scripts/mutants {{ names }}

# Kill the program again and again, and see whether it keeps its promises
torture kills="1000" seed="1":
    cargo build -p rutter
    cargo run -p rutter-testkit --bin torture -- --kills {{ kills }} --seed {{ seed }}

# Let every operation of the store's disk fail, not only some of them
torture-disk:
    RUTTER_EVERY=1 cargo test -p rutter-testkit --test all disk::

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
