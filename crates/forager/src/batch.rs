//! Lines that are handed on many at a time.

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

/// The items of a batch that were refused, and why.
pub(crate) type Refused = Vec<(usize, BadLine)>;

/// Reads lines and hands them to `call` in batches; what is bad is reported, and the rest goes on.
///
/// A call that fails for what it was asked is made again with half of its batch, and then with the
/// other half, until the line at fault stands alone. An item that `is_alone` is always handed on by itself.
pub(crate) fn for_each_batch<T>(
    mut input: Input,
    output: &mut Output,
    batches: Batches,
    mut parse: impl FnMut(&Line<'_>) -> Result<T, BadLine>,
    is_alone: impl Fn(&T) -> bool,
    mut call: impl FnMut(&[T], &mut Output) -> anyhow::Result<Refused>,
) -> anyhow::Result<Summary> {
    let mut batch = Batch { items: Vec::new(), places: Vec::new(), summary: Summary::default() };
    let mut buffer = Vec::new();
    while let Some(chunk) = input.next_chunk(buffer)? {
        for line in chunk.lines() {
            let item = match parse(&line) {
                Ok(item) => item,
                Err(problem) => {
                    batch.summary.refuse(&line.place(), &problem);
                    continue;
                }
            };
            let is_alone = is_alone(&item);
            if is_alone {
                batch.hand_on(output, &mut call)?;
            }
            batch.items.push(item);
            batch.places.push(line.place());
            if is_alone || batch.items.len() >= batches.size {
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

    fn refuse(&mut self, place: &Place, problem: &BadLine) {
        report(place, problem);
        self.bad += 1;
    }
}

struct Batch<T> {
    items: Vec<T>,
    places: Vec<Place>,
    summary: Summary,
}

impl<T> Batch<T> {
    fn hand_on(
        &mut self,
        output: &mut Output,
        call: &mut impl FnMut(&[T], &mut Output) -> anyhow::Result<Refused>,
    ) -> anyhow::Result<()> {
        // Halves that are still to be handed on, the next one last.
        let mut parts = vec![(0, self.items.len())];
        while let Some((start, end)) = parts.pop().filter(|(start, end)| start < end) {
            match call(&self.items[start..end], output) {
                Ok(refused) => {
                    for (index, problem) in refused {
                        self.summary.refuse(&self.places[start + index], &problem);
                    }
                }
                Err(error) if !is_about_input(&error) => return Err(error),
                Err(error) if end - start == 1 => {
                    self.summary.refuse(&self.places[start], &BadLine::whole(format_args!("{error:#}")));
                }
                Err(_) => {
                    let middle = start.midpoint(end);
                    parts.extend([(middle, end), (start, middle)]);
                }
            }
        }
        self.items.clear();
        self.places.clear();
        Ok(())
    }
}
