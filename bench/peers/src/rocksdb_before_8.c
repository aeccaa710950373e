// What RocksDB has since version 8 and the crate calls. A manager of write buffers: where options are dropped, and somebody has made one, which
// nobody here does. A collector of deletions with a share of them, which nobody here asks for either.
#include <stddef.h>
#include <stdlib.h>

void rocksdb_options_add_compact_on_deletion_collector_factory(void *options, size_t window, size_t deletions);

void rocksdb_write_buffer_manager_destroy(void *manager) {
    (void)manager;
    abort();
}

void rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
    void *options, size_t window, size_t deletions, double share) {
    if (share > 0)
        abort();
    rocksdb_options_add_compact_on_deletion_collector_factory(options, window, deletions);
}
