// What RocksDB has since version 8 and the crate names where it drops options: it is called where somebody has made such a manager, which
// nobody here does.
#include <stdlib.h>

void rocksdb_write_buffer_manager_destroy(void *manager) {
    (void)manager;
    abort();
}
