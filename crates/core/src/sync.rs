//! Locking of poisoned mutexes.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, even if it is poisoned. For data that is valid at every step: the panic itself is reported
/// where it happens.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

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
