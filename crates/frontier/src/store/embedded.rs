//! The default store: one folder, on fjall.
