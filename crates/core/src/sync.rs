//! Locking of poisoned mutexes, locks by name, and futures that may panic.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

/// Locks the mutex, even if it is poisoned. For data that is valid at every step: the panic itself is reported
/// where it happens.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a future to its end. Returns `None` if it panics.
pub async fn caught<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(None),
        },
    )
    .await
}

/// Values by name, such as locks: concurrent users of a name share one value. A value that is not in use any more is
/// forgotten.
#[derive(Debug)]
pub struct ByName<T> {
    values: Mutex<Option<HashMap<String, Weak<T>>>>,
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ByName<T> {
    /// Creates the values of no names.
    pub const fn new() -> Self {
        Self {
            values: Mutex::new(None),
        }
    }
}

impl<T: Default> ByName<T> {
    /// Returns the value of a name, which is a new one unless the name is in use.
    pub fn of(&self, name: &str) -> Arc<T> {
        let mut values = lock(&self.values);
        let values = values.get_or_insert_default();
        if let Some(value) = values.get(name).and_then(Weak::upgrade) {
            return value;
        }
        values.retain(|_, value| value.strong_count() > 0);
        let value = Arc::new(T::default());
        values.insert(name.to_owned(), Arc::downgrade(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_value_while_it_is_in_use() {
        let values = ByName::<Mutex<u8>>::new();
        let first = values.of("a");
        *lock(&first) = 1;
        let others: Vec<_> = (0..100).map(|it| values.of(&format!("{it}"))).collect();
        assert_eq!(*lock(&values.of("a")), 1);
        assert!(others.iter().all(|other| *lock(other) == 0));
        drop((first, others));
        assert_eq!(*lock(&values.of("a")), 0);
        assert_eq!(lock(&values.values).as_ref().unwrap().len(), 1);
    }

    #[test]
    fn a_panic_of_another_thread_is_no_reason_to_panic() {
        let mutex = Mutex::new(1);
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let mut value = lock(&mutex);
                *value = 2;
                panic!("as the test wants it");
            });
            assert!(panics.join().is_err());
        });
        assert!(mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 2);
    }
}
