//! Results that a device may still be computing.

use super::error::ModelError;

/// A result, or the work that a device has queued for it. Dropping it abandons the result and not the work.
pub enum Pending<T> {
    Ready(T),
    /// Waits for the device, and gives the result.
    Queued(Box<dyn FnOnce() -> Result<T, ModelError>>),
}

impl<T: 'static> Pending<T> {
    /// A result that `wait` waits for.
    pub fn queued(wait: impl FnOnce() -> Result<T, ModelError> + 'static) -> Self {
        Self::Queued(Box::new(wait))
    }

    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(_))
    }

    /// The result, as soon as it is there.
    pub fn wait(self) -> Result<T, ModelError> {
        match self {
            Self::Ready(result) => Ok(result),
            Self::Queued(wait) => wait(),
        }
    }

    /// Applies a function to the result: now if it is ready, and otherwise when it is waited for.
    ///
    /// # Errors
    /// Those of the function, if it is called now.
    pub fn then<U>(self, f: impl FnOnce(T) -> Result<U, ModelError> + 'static) -> Result<Pending<U>, ModelError> {
        Ok(match self {
            Self::Ready(result) => Pending::Ready(f(result)?),
            Self::Queued(wait) => Pending::Queued(Box::new(|| f(wait()?))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    fn halved(n: i32) -> Result<i32, ModelError> {
        if n % 2 == 0 { Ok(n / 2) } else { Err(ModelError::Forward(format!("{n} is odd"))) }
    }

    #[test]
    fn a_function_of_a_result_is_called_when_there_is_one() {
        let pending = Pending::Ready(6).then(halved).unwrap();
        assert!(pending.is_ready());
        assert_eq!(pending.wait().unwrap(), 3);
        assert!(Pending::Ready(3).then(halved).is_err());

        let is_done = Rc::new(Cell::new(false));
        let noted = Rc::clone(&is_done);
        let queued = Pending::queued(move || {
            noted.set(true);
            Ok(6)
        });
        let pending = queued.then(halved).unwrap().then(halved).unwrap();
        assert!(!pending.is_ready() && !is_done.get());
        assert_eq!(pending.wait().unwrap_err().to_string(), "forward pass: 3 is odd");
        assert!(is_done.get());
    }
}
