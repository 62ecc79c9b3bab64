//! The API types of tkex.tencent.com/v1alpha1, their names and their reasons.
