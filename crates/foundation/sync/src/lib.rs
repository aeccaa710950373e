//! Under construction: first code arrives with the storage layers.
