//! What does a test program say about itself?
