//! Values by number.

const BLOCK_BITS: u32 = 14;
const BLOCK: usize = 1 << BLOCK_BITS;

/// Values by number. They lie in blocks that never move, so that growing takes no pause, and never
/// room for a second copy.
#[derive(Debug)]
pub(super) struct Blocks<T> {
    blocks: Vec<Vec<T>>,
    len: u32,
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self { blocks: Vec::new(), len: 0 }
    }
}

impl<T> Blocks<T> {
    /// How many numbers were given out.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Appends a value.
    pub(super) fn push(&mut self, value: T) {
        if self.len as usize == self.blocks.len() * BLOCK {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(value);
            self.len += 1;
        }
    }

    /// Takes back the last value.
    pub(super) fn pop(&mut self) -> Option<T> {
        let block = self.blocks.last_mut()?;
        let value = block.pop()?;
        self.len -= 1;
        if block.is_empty() {
            self.blocks.pop();
        }
        Some(value)
    }

    /// The value of a number.
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.blocks.get((number >> BLOCK_BITS) as usize)?.get(number as usize & (BLOCK - 1))
    }

    /// The value of a number, to be changed.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.blocks.get_mut((number >> BLOCK_BITS) as usize)?.get_mut(number as usize & (BLOCK - 1))
    }

    /// The values from `first` on, in the order of their numbers.
    pub(super) fn iter_from(&self, first: u32) -> impl Iterator<Item = &T> {
        let (block, within) = ((first >> BLOCK_BITS) as usize, first as usize & (BLOCK - 1));
        let head = self.blocks.get(block).and_then(|block| block.get(within..)).unwrap_or_default();
        let rest = self.blocks.get(block + 1..).unwrap_or_default();
        head.iter().chain(rest.iter().flatten())
    }

    /// All values, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }

    /// All values, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.blocks.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_across_blocks() {
        const EACH: u32 = 1 << BLOCK_BITS;
        const TOTAL: u32 = 2 * EACH + 3;
        let mut all = Blocks::default();
        (0..TOTAL).for_each(|number| all.push(number));
        for number in [0, EACH - 1, EACH, TOTAL - 1] {
            assert_eq!(all.get(number), Some(&number));
            assert!(all.iter_from(number).copied().eq(number..TOTAL), "from {number} on");
        }
        assert_eq!((all.get(TOTAL), all.iter().count()), (None, TOTAL as usize));
        for value in all.iter_mut() {
            *value += 1;
        }
        let taken: Vec<u32> = std::iter::from_fn(|| all.pop()).collect();
        assert!(taken.into_iter().eq((1..=TOTAL).rev()));
        assert_eq!((all.len(), all.iter().count()), (0, 0));
    }
}
