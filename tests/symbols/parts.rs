// Names of Rust for test_symbols.c, in both manglings.
use std::fmt::Debug;

pub trait Part {
    fn part(&self) -> usize;
}

pub struct Pair<A, B>(pub A, pub B);

impl<A: Debug, B: Debug> Part for Pair<A, B> {
    #[inline(never)]
    fn part(&self) -> usize {
        format!("{:?} {:?}", self.0, self.1).len()
    }
}

#[inline(never)]
fn apply<F: Fn(usize) -> usize>(f: F, x: usize) -> usize {
    f(x)
}

#[no_mangle]
pub extern "C" fn part_rust(x: usize) -> usize {
    let pair = Pair(x, [Some("ü"); 2]);
    apply(|y| pair.part() + y, x) + Pair((), 'x').part()
}
