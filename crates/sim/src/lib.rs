//! The fake world for tests: virtual time, a faulty disk, workloads and an oracle. Never part of the product.
