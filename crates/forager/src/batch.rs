//! Lines that are handed on many at a time.

use std::collections::VecDeque;

use serde::Serialize;

use crate::Outcome;
use crate::input::{Input, Line, Place};
use crate::output::Output;
use crate::record::{BadLine, report};
use crate::store::is_about_input;

/// How lines are put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batches {
    /// How many at most.
    pub(crate) size: usize,
    /// Whether a batch ends when the input pauses, so that whoever writes slowly is answered at once.
    pub(crate) eager: bool,
}

/// Reads lines and hands them to `call` in batches; what is bad is reported, and the rest goes on.
///
/// A call that fails for what it was asked has told nothing. It is made again with half of its batch, and then
/// with the other half, until the line at fault stands alone. An item that `is_alone` is always handed on by itself.
pub(crate) fn for_each_batch<T>(
    mut input: Input,
    output: &mut Output,
    batches: Batches,
    mut parse: impl FnMut(&Line<'_>) -> Result<T, BadLine>,
    is_alone: impl Fn(&T) -> bool,
    mut call: impl FnMut(&mut [T], &mut Told<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<Summary> {
    let mut batch =
        Batch { items: Vec::new(), places: Vec::new(), unread: VecDeque::new(), summary: Summary::default() };
    let mut buffer = Vec::new();
    while let Some(chunk) = input.next_chunk(buffer)? {
        for line in chunk.lines() {
            match parse(&line) {
                Ok(item) => {
                    let is_alone = is_alone(&item);
                    if is_alone {
                        batch.hand_on(output, &mut call)?;
                    }
                    batch.items.push(item);
                    batch.places.push(line.place());
                    if is_alone {
                        batch.hand_on(output, &mut call)?;
                    }
                }
                Err(problem) => {
                    let before = batch.items.len();
                    batch.unread.push_back(Unread { before, place: line.place(), problem });
                }
            }
            if batch.items.len() + batch.unread.len() >= batches.size {
                batch.hand_on(output, &mut call)?;
            }
        }
        if batches.eager {
            batch.hand_on(output, &mut call)?;
        }
        output.flush()?;
        buffer = chunk.recycle();
    }
    batch.hand_on(output, &mut call)?;
    output.flush()?;
    Ok(batch.summary)
}

/// How reading in batches went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summary {
    /// How many lines were bad.
    pub(crate) bad: u64,
}

impl Summary {
    /// What it means for the run.
    pub(crate) fn outcome(self) -> Outcome {
        if self.bad == 0 { Outcome::Complete } else { Outcome::SomeBad }
    }

    /// Tells what only shows when all lines are read.
    pub(crate) fn tell<R>(&mut self, output: &mut Output, tell: impl FnOnce(&mut Told<'_>) -> R) -> R {
        let unread = &mut VecDeque::new();
        tell(&mut Told { output, places: &[], first: 0, unread, summary: self })
    }
}

/// A line that could not be read, and how many items of its batch came before it.
struct Unread {
    before: usize,
    place: Place,
    problem: BadLine,
}

struct Batch<T> {
    items: Vec<T>,
    places: Vec<Place>,
    unread: VecDeque<Unread>,
    summary: Summary,
}

impl<T> Batch<T> {
    fn hand_on(
        &mut self,
        output: &mut Output,
        call: &mut impl FnMut(&mut [T], &mut Told<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Self { items, places, unread, summary } = self;
        let mut told = Told { output, places, first: 0, unread, summary };
        // Halves that are still to be handed on, the next one last.
        let mut parts = vec![(0, items.len())];
        while let Some((start, end)) = parts.pop().filter(|(start, end)| start < end) {
            told.first = start;
            match call(&mut items[start..end], &mut told) {
                Ok(()) => {}
                Err(error) if !is_about_input(&error) => return Err(error),
                Err(error) if end - start == 1 => {
                    told.bad(0, &BadLine::whole(format_args!("{error:#}")))?;
                }
                Err(_) => {
                    let middle = start.midpoint(end);
                    parts.extend([(middle, end), (start, middle)]);
                }
            }
        }
        told.catch_up(items.len())?;
        self.items.clear();
        self.places.clear();
        Ok(())
    }
}

/// Where a call tells what came of its items, in their order: rows go to standard output, problems to standard
/// error, and both come in the order of the lines, those that could not be read included.
pub(crate) struct Told<'a> {
    output: &'a mut Output,
    /// Where the items of the batch stand.
    places: &'a [Place],
    /// How many of them came before those of the call.
    first: usize,
    unread: &'a mut VecDeque<Unread>,
    summary: &'a mut Summary,
}

impl Told<'_> {
    /// A row of the answer to an item.
    pub(crate) fn row(&mut self, index: usize, row: &impl Serialize) -> anyhow::Result<()> {
        self.catch_up(self.first + index)?;
        self.output.row(row)
    }

    /// What is wrong with an item.
    pub(crate) fn bad(&mut self, index: usize, problem: &BadLine) -> anyhow::Result<()> {
        self.catch_up(self.first + index)?;
        self.refuse(&self.places[self.first + index], problem)
    }

    /// What is wrong with a line.
    pub(crate) fn refuse(&mut self, place: &Place, problem: &BadLine) -> anyhow::Result<()> {
        // So that it comes after the rows of the lines before, where both go to one terminal or file.
        self.output.flush()?;
        report(place, problem);
        self.summary.bad += 1;
        Ok(())
    }

    /// Counts lines that go with one that was refused: its complaint speaks for them.
    pub(crate) fn pass_over(&mut self, lines: usize) {
        self.summary.bad += lines as u64;
    }

    /// Reports the lines before an item that could not be read.
    fn catch_up(&mut self, item: usize) -> anyhow::Result<()> {
        while let Some(line) = self.unread.pop_front_if(|line| line.before <= item) {
            self.refuse(&line.place, &line.problem)?;
        }
        Ok(())
    }
}
