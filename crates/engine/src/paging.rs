//! Reads a list page by page.

use rutter_core::limits::PAGE_MAX;
use rutter_core::port::query::{ListPage, PageWalk, Pagination};

/// Reads page after page until the list ends or `items_max` items are read; also returns whether that was the whole.
pub async fn all_pages<T, E, F>(items_max: usize, mut read: impl FnMut(Pagination) -> F) -> Result<(Vec<T>, bool), E>
where
    F: Future<Output = Result<ListPage<T>, E>>,
{
    let (mut items, mut walk) = (Vec::new(), PageWalk::new(PAGE_MAX));
    while let Some(page) = walk.next_page() {
        items.extend(walk.take(read(page).await?));
        if items.len() >= items_max {
            break;
        }
    }
    Ok((items, !walk.has_more()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::port::query::ListCursor;
    use std::convert::Infallible;

    /// Three items, one on each page.
    async fn read(page: Pagination) -> Result<ListPage<u32>, Infallible> {
        let number: u32 = page.after.map_or(0, |ListCursor(text)| text.parse().unwrap());
        let next = (number < 2).then(|| ListCursor((number + 1).to_string()));
        Ok(ListPage { items: vec![number], next })
    }

    #[tokio::test]
    async fn pages_are_read_to_the_end_or_to_the_bound() {
        for (items_max, items, is_whole) in
            [(usize::MAX, &[0, 1, 2][..], true), (3, &[0, 1, 2], true), (2, &[0, 1], false), (0, &[0], false)]
        {
            assert_eq!(all_pages(items_max, read).await, Ok((items.to_vec(), is_whole)));
        }
    }
}
