//! Draws the dependencies between steps: one row per step, with its dependencies as lanes on the left.
//!
//! A step's lane runs down from its `●` to the last step that needs it. A row joins the lanes of its step's
//! dependencies; a lane that only passes keeps its `│`. Steps in one wave do not depend on each other.

/// The characters to draw with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphCharacters {
    node: char,
    down: char,
    across: char,
    /// A joined lane that continues below: at the left end, at the right end, between.
    on: [char; 3],
    /// A joined lane that ends here: at the left end, at the right end, between.
    end: [char; 3],
}

impl GraphCharacters {
    pub(crate) const UNICODE: GraphCharacters =
        GraphCharacters {
            node: '●', down: '│', across: '─', on: ['├', '┤', '┼'], end: ['╰', '╯', '┴']
        };
    pub(crate) const ASCII: GraphCharacters =
        GraphCharacters { node: '*', down: '|', across: '-', on: ['+', '+', '+'], end: ['`', '\'', '^'] };
}

/// One line of the drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GraphRow {
    /// The step drawn here; none on a line that only continues lanes.
    pub(crate) step: Option<usize>,
    pub(crate) lanes: String,
}

/// Groups the steps into waves: each step in the first wave after all its dependencies.
///
/// `needs[step]` are the positions of its dependencies; `topological` has every step after its dependencies.
pub(crate) fn waves(needs: &[Vec<usize>], topological: &[usize]) -> Vec<Vec<usize>> {
    let mut wave_of = vec![0; needs.len()];
    let mut waves: Vec<Vec<usize>> = Vec::new();
    for &step in topological {
        wave_of[step] = needs[step].iter().map(|&need| wave_of[need] + 1).max().unwrap_or(0);
        if waves.len() <= wave_of[step] {
            waves.resize(wave_of[step] + 1, Vec::new());
        }
        waves[wave_of[step]].push(step);
    }
    waves
}

/// Draws the waves from top to bottom.
pub(crate) fn draw(needs: &[Vec<usize>], waves: &[Vec<usize>], pen: GraphCharacters) -> Vec<GraphRow> {
    let mut drawing = LaneDrawing { pen, lanes: Vec::new(), waiting: vec![0; needs.len()], rows: Vec::new() };
    for &need in needs.iter().flatten() {
        drawing.waiting[need] += 1;
    }
    for wave in waves {
        // A step without dependents leaves no lane for the others to cross.
        let (ends, rest): (Vec<usize>, Vec<usize>) = wave.iter().partition(|&&step| drawing.waiting[step] == 0);
        for step in ends.into_iter().chain(rest) {
            drawing.step(step, &needs[step]);
        }
    }
    drawing.rows
}

struct LaneDrawing {
    pen: GraphCharacters,
    /// The step of each lane.
    lanes: Vec<Option<usize>>,
    /// How many steps not yet drawn depend on each.
    waiting: Vec<usize>,
    rows: Vec<GraphRow>,
}

impl LaneDrawing {
    fn step(&mut self, step: usize, needs: &[usize]) {
        for &need in needs {
            self.waiting[need] -= 1;
        }
        let joined: Vec<usize> =
            (0..self.lanes.len()).filter(|&at| self.lanes[at].is_some_and(|owner| needs.contains(&owner))).collect();
        let lane = self.lane_for(&joined);
        if self.would_touch(lane, &joined) {
            self.rows.push(GraphRow { step: None, lanes: self.render(|_, _| None, 0, 0) });
        }
        let left = joined.iter().copied().fold(lane, usize::min);
        let right = joined.iter().copied().fold(lane, usize::max);
        let lanes = self.render(|at, drawing| drawing.join(at, lane, &joined, left, right), left, right);
        self.rows.push(GraphRow { step: Some(step), lanes });

        for &at in &joined {
            if !self.goes_on(at) {
                self.lanes[at] = None;
            }
        }
        if lane == self.lanes.len() {
            self.lanes.push(None);
        }
        self.lanes[lane] = (self.waiting[step] > 0).then_some(step);
        while self.lanes.last() == Some(&None) {
            self.lanes.pop();
        }
    }

    /// A step takes over the first lane that ends with it; otherwise a free lane right of those it joins.
    fn lane_for(&self, joined: &[usize]) -> usize {
        let ending = joined.iter().copied().find(|&at| !self.goes_on(at));
        let from = joined.last().map_or(0, |last| last + 1);
        ending
            .or_else(|| (from..self.lanes.len()).find(|&at| self.lanes[at].is_none()))
            .unwrap_or(self.lanes.len().max(from))
    }

    /// Two nodes directly above each other would look unconnected.
    fn would_touch(&self, lane: usize, joined: &[usize]) -> bool {
        let above = self.rows.last().and_then(|row| row.lanes.chars().nth(lane * 2));
        joined.contains(&lane) && above == Some(self.pen.node)
    }

    fn goes_on(&self, lane: usize) -> bool {
        self.lanes[lane].is_some_and(|owner| self.waiting[owner] > 0)
    }

    /// The character where a step's row meets a lane.
    fn join(&self, at: usize, lane: usize, joined: &[usize], left: usize, right: usize) -> Option<char> {
        if at == lane {
            return Some(self.pen.node);
        }
        let set = if self.lanes.get(at)?.is_some() && self.goes_on(at) { self.pen.on } else { self.pen.end };
        let place = if at == left {
            0
        } else if at == right {
            1
        } else {
            2
        };
        joined.contains(&at).then_some(set[place])
    }

    fn render(&self, join: impl Fn(usize, &LaneDrawing) -> Option<char>, left: usize, right: usize) -> String {
        let mut text = String::new();
        for at in 0..self.lanes.len().max(right + 1) {
            let is_between = at > left && at <= right;
            if at > 0 {
                text.push(if is_between { self.pen.across } else { ' ' });
            }
            let is_open = self.lanes.get(at).is_some_and(Option::is_some);
            text.push(match join(at, self) {
                Some(joint) => joint,
                None if is_open => self.pen.down,
                None if is_between => self.pen.across,
                None => ' ',
            });
        }
        text.truncate(text.trim_end().len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(needs: &[&[usize]]) -> Vec<String> {
        let needs: Vec<Vec<usize>> = needs.iter().map(|needs| needs.to_vec()).collect();
        let order: Vec<usize> = (0..needs.len()).collect();
        let label = |row: GraphRow| match row.step {
            Some(step) => format!("{} {step}", row.lanes),
            None => row.lanes,
        };
        draw(&needs, &waves(&needs, &order), GraphCharacters::UNICODE).into_iter().map(label).collect()
    }

    #[test]
    fn a_chain_stays_in_one_lane() {
        assert_eq!(drawn(&[&[], &[0], &[1]]), ["● 0", "│", "● 1", "│", "● 2"]);
    }

    #[test]
    fn steps_without_dependencies_are_unconnected() {
        assert_eq!(drawn(&[&[], &[], &[]]), ["● 0", "● 1", "● 2"]);
    }

    #[test]
    fn a_diamond_opens_and_closes() {
        assert_eq!(drawn(&[&[], &[0], &[0], &[1, 2]]), ["● 0", "├─● 1", "● │ 2", "│ │", "●─╯ 3"]);
    }

    #[test]
    fn a_step_that_needs_all_joins_every_lane() {
        let needs: &[&[usize]] = &[&[], &[], &[], &[0, 1, 2], &[0, 1, 2]];
        assert_eq!(drawn(needs), ["● 0", "│ ● 1", "│ │ ● 2", "├─┼─┼─● 3", "●─┴─╯ 4"]);
    }

    #[test]
    fn a_lane_only_passed_keeps_its_line() {
        let needs: &[&[usize]] = &[&[], &[], &[0], &[0], &[1, 3]];
        assert_eq!(drawn(needs), ["● 0", "│ ● 1", "├─│─● 2", "● │ 3", "│ │", "●─╯ 4"]);
    }
}
