//! The places that fetches have while they are under way: in a log, the number of a worker.

use forager_frontier::entry::Token;

/// Which places are taken, and by whom. There are as many as fetches were ever under way at once.
#[derive(Debug, Default)]
pub(crate) struct Places {
    places: Vec<Option<Token>>,
    /// How many are taken.
    taken: usize,
}

impl Places {
    /// Gives a page the first place that is free.
    pub(crate) fn take(&mut self, token: Token) {
        self.taken += 1;
        match self.places.iter_mut().find(|place| place.is_none()) {
            Some(free) => *free = Some(token),
            None => self.places.push(Some(token)),
        }
    }

    /// How many are under way.
    pub(crate) fn count(&self) -> usize {
        self.taken
    }

    /// Those that are under way.
    pub(crate) fn tokens(&self) -> Vec<Token> {
        self.places.iter().flatten().copied().collect()
    }

    /// The place of a page, from 1 on, which is free now; 0 if it has none.
    pub(crate) fn leave(&mut self, token: Token) -> usize {
        let Some(index) = self.places.iter().position(|place| *place == Some(token)) else { return 0 };
        self.places[index] = None;
        self.taken -= 1;
        index + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_is_free_is_taken() {
        let mut places = Places::default();
        [1, 2, 3].map(Token).into_iter().for_each(|token| places.take(token));
        assert_eq!((places.leave(Token(2)), places.leave(Token(2)), places.leave(Token(9))), (2, 0, 0));
        assert_eq!((places.count(), places.tokens()), (2, vec![Token(1), Token(3)]));
        places.take(Token(4));
        assert_eq!([1, 4, 3].map(|token| places.leave(Token(token))), [1, 2, 3]);
    }
}
