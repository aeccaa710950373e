/*
 * What the adapter asks of WiredTiger. Its handles are structs of pointers to functions whose places differ from version to
 * version, and some of those take any number of arguments: both are the header's matter, so a C compiler reads it.
 *
 * Every function returns 0 or WiredTiger's error. Keys and values are raw bytes; what a row points to stays until the next
 * call with its cursor, or the end of its transaction.
 */
#include <wiredtiger.h>

/* A row, in the memory of its page. */
typedef struct {
    const void *key;
    size_t key_bytes;
    const void *value;
    size_t value_bytes;
} vellum_wt_row;

int vellum_wt_open(const char *home, const char *config, WT_CONNECTION **connection) {
    return wiredtiger_open(home, NULL, config, connection);
}

int vellum_wt_close(WT_CONNECTION *connection) { return connection->close(connection, NULL); }

int vellum_wt_open_session(WT_CONNECTION *connection, const char *config, WT_SESSION **session) {
    return connection->open_session(connection, NULL, config, session);
}

int vellum_wt_close_session(WT_SESSION *session) { return session->close(session, NULL); }

int vellum_wt_create(WT_SESSION *session, const char *name, const char *config) {
    return session->create(session, name, config);
}

int vellum_wt_drop(WT_SESSION *session, const char *name) { return session->drop(session, name, NULL); }

int vellum_wt_begin(WT_SESSION *session) { return session->begin_transaction(session, NULL); }

int vellum_wt_commit(WT_SESSION *session) { return session->commit_transaction(session, NULL); }

int vellum_wt_rollback(WT_SESSION *session) { return session->rollback_transaction(session, NULL); }

int vellum_wt_checkpoint(WT_SESSION *session) { return session->checkpoint(session, NULL); }

int vellum_wt_open_cursor(WT_SESSION *session, const char *uri, const char *config, WT_CURSOR **cursor) {
    return session->open_cursor(session, uri, NULL, config, cursor);
}

int vellum_wt_close_cursor(WT_CURSOR *cursor) { return cursor->close(cursor); }

int vellum_wt_reset(WT_CURSOR *cursor) { return cursor->reset(cursor); }

static void set_key(WT_CURSOR *cursor, const void *key, size_t bytes) {
    WT_ITEM item = {0};
    item.data = key;
    item.size = bytes;
    cursor->set_key(cursor, &item);
}

static void set_value(WT_CURSOR *cursor, const void *value, size_t bytes) {
    WT_ITEM item = {0};
    item.data = value;
    item.size = bytes;
    cursor->set_value(cursor, &item);
}

static int get_value(WT_CURSOR *cursor, vellum_wt_row *row) {
    WT_ITEM item;
    int error = cursor->get_value(cursor, &item);
    if (error == 0) {
        row->value = item.data;
        row->value_bytes = item.size;
    }
    return error;
}

/* The row where the cursor stands. */
static int get_row(WT_CURSOR *cursor, vellum_wt_row *row) {
    WT_ITEM item;
    int error = cursor->get_key(cursor, &item);
    if (error != 0)
        return error;
    row->key = item.data;
    row->key_bytes = item.size;
    return get_value(cursor, row);
}

/* Puts the cursor on the row of the key; hands out its value only. */
int vellum_wt_search(WT_CURSOR *cursor, const void *key, size_t key_bytes, vellum_wt_row *row) {
    int error;
    set_key(cursor, key, key_bytes);
    error = cursor->search(cursor);
    return error != 0 ? error : get_value(cursor, row);
}

/* Puts the cursor on the smallest row at or above the key. */
int vellum_wt_first_from(WT_CURSOR *cursor, const void *key, size_t key_bytes, vellum_wt_row *row) {
    int error, side;
    set_key(cursor, key, key_bytes);
    error = cursor->search_near(cursor, &side);
    if (error == 0 && side < 0)
        error = cursor->next(cursor);
    return error != 0 ? error : get_row(cursor, row);
}

/* Puts the cursor on the largest row at or below the key. */
int vellum_wt_last_from(WT_CURSOR *cursor, const void *key, size_t key_bytes, vellum_wt_row *row) {
    int error, side;
    set_key(cursor, key, key_bytes);
    error = cursor->search_near(cursor, &side);
    if (error == 0 && side > 0)
        error = cursor->prev(cursor);
    return error != 0 ? error : get_row(cursor, row);
}

/* Moves to the next row; from nowhere, to the first. */
int vellum_wt_next(WT_CURSOR *cursor, vellum_wt_row *row) {
    int error = cursor->next(cursor);
    return error != 0 ? error : get_row(cursor, row);
}

/* Moves to the row before. */
int vellum_wt_prev(WT_CURSOR *cursor, vellum_wt_row *row) {
    int error = cursor->prev(cursor);
    return error != 0 ? error : get_row(cursor, row);
}

int vellum_wt_insert(
    WT_CURSOR *cursor, const void *key, size_t key_bytes, const void *value, size_t value_bytes) {
    set_key(cursor, key, key_bytes);
    set_value(cursor, value, value_bytes);
    return cursor->insert(cursor);
}

/* Gives the row where the cursor stands another value. */
int vellum_wt_update_here(WT_CURSOR *cursor, const void *value, size_t value_bytes) {
    set_value(cursor, value, value_bytes);
    return cursor->update(cursor);
}

int vellum_wt_remove(WT_CURSOR *cursor, const void *key, size_t key_bytes) {
    set_key(cursor, key, key_bytes);
    return cursor->remove(cursor);
}

/* Moves a cursor of the metadata to the next entry, and hands out its name. */
int vellum_wt_next_name(WT_CURSOR *cursor, const char **name) {
    int error = cursor->next(cursor);
    return error != 0 ? error : cursor->get_key(cursor, name);
}
