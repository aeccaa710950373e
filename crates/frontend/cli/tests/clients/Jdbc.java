import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Array;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** The JDBC driver at a server that the environment names (PGHOST ...); prints what it sees. `jdbc.out` is what it prints at PostgreSQL 15. */
public class Jdbc {
    static PrintStream out;

    static Connection connect(String... more) throws SQLException {
        var env = System.getenv();
        var properties = new Properties();
        properties.setProperty("user", env.get("PGUSER"));
        properties.setProperty("password", env.getOrDefault("PGPASSWORD", ""));
        for (int i = 0; i < more.length; i += 2) {
            properties.setProperty(more[i], more[i + 1]);
        }
        var url = "jdbc:postgresql://" + env.get("PGHOST") + ":" + env.get("PGPORT") + "/" + env.get("PGDATABASE");
        return DriverManager.getConnection(url, properties);
    }

    static void run(Connection connection, String sql) throws SQLException {
        try (var statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    static String show(Object value) throws SQLException {
        if (value instanceof byte[] bytes) {
            return "bytes " + HexFormat.of().formatHex(bytes);
        }
        if (value instanceof Array array) {
            return Arrays.deepToString((Object[]) array.getArray());
        }
        return String.valueOf(value);
    }

    static void rows(String title, ResultSet set, String... columns) throws SQLException {
        out.println(title);
        var meta = set.getMetaData();
        while (set.next()) {
            var line = new StringBuilder("  ");
            if (columns.length == 0) {
                for (int i = 1; i <= meta.getColumnCount(); i++) {
                    line.append(i > 1 ? " | " : "").append(show(set.getObject(i)));
                }
            } else {
                for (var column : columns) {
                    line.append(line.length() > 2 ? " | " : "").append(show(set.getObject(column)));
                }
            }
            out.println(line);
        }
        set.close();
    }

    static String error(SQLException error) {
        var told = new StringBuilder(error.getSQLState() + " " + error.getClass().getSimpleName());
        if (error instanceof PSQLException own && own.getServerErrorMessage() != null) {
            ServerErrorMessage m = own.getServerErrorMessage();
            told.append(" ").append(m.getSeverity()).append(" ").append(m.getMessage());
            told.append(" | ").append(m.getDetail()).append(" | ").append(m.getHint());
            told.append(" | ").append(m.getSchema()).append(" ").append(m.getTable()).append(" ").append(m.getColumn());
            told.append(" ").append(m.getConstraint());
        } else {
            told.append(" ").append(error.getMessage());
        }
        return told.toString();
    }

    static void connecting() throws SQLException {
        out.println("# connecting");
        try (var connection = connect("ApplicationName", "a client")) {
            DatabaseMetaData meta = connection.getMetaData();
            out.println(meta.getDatabaseProductName() + " " + meta.getDatabaseMajorVersion());
            out.println(meta.getUserName() + " " + connection.getCatalog() + " " + connection.getSchema());
            out.println(connection.getTransactionIsolation() + " " + connection.isReadOnly() + " " + connection.getAutoCommit());
            out.println(connection.isValid(60) + " " + connection.getClientInfo("ApplicationName"));
            out.println(meta.getMaxColumnNameLength() + " " + meta.getMaxColumnsInIndex() + " " + meta.supportsTransactionIsolationLevel(Connection.TRANSACTION_REPEATABLE_READ));
        }
    }

    /** Every type, read and sent in text and in binary (which the driver takes from the first execution on). */
    static void types(Path file) throws Exception {
        out.println("# types");
        for (var how : List.of("false", "true")) {
            try (var connection = connect("binaryTransfer", how, "prepareThreshold", how.equals("true") ? "-1" : "5")) {
                run(connection, "set timezone = 'UTC'");
                for (var line : Files.readAllLines(file)) {
                    if (line.startsWith("#")) {
                        continue;
                    }
                    var parts = line.split("\t", 2);
                    var name = parts[0];
                    try (var select = connection.prepareStatement("select cast(? as text)::" + name + " as v")) {
                        select.setString(1, parts[1]);
                        try (var set = select.executeQuery()) {
                            set.next();
                            var meta = set.getMetaData();
                            var value = set.getObject(1);
                            out.println(name + " " + parts[1] + " -> " + meta.getColumnTypeName(1) + " " + meta.getColumnType(1)
                                + " " + meta.getPrecision(1) + " " + meta.getScale(1) + " " + meta.getColumnDisplaySize(1)
                                + " " + meta.getColumnClassName(1) + " " + show(value));
                            try (var again = connection.prepareStatement("select ?::" + name + ", ?::" + name + " is null")) {
                                again.setObject(1, value);
                                again.setNull(2, Types.NULL);
                                try (var back = again.executeQuery()) {
                                    back.next();
                                    out.println("  " + show(back.getObject(1)) + " " + back.getBoolean(2));
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    static void prepared(Connection connection) throws SQLException {
        out.println("# prepared statements");
        run(connection, "create table item (id int primary key, name varchar(20), price numeric(10,2), at timestamptz, d date, t time, ts timestamp,"
            + " b bytea, u uuid, f float8, r real, s smallint, l bigint, ok boolean, tags text[])");
        try (var insert = connection.prepareStatement("insert into item values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            // The driver makes a named statement at the fifth execution, with binary parameters from then on.
            for (int i = 0; i < 12; i++) {
                insert.setInt(1, i);
                insert.setString(2, "item " + i);
                insert.setBigDecimal(3, new BigDecimal(i).movePointLeft(1));
                insert.setObject(4, OffsetDateTime.of(2024, 2, 29, 1, 2, i, 0, ZoneOffset.UTC));
                insert.setObject(5, LocalDate.of(2024, 1, 1 + i));
                insert.setObject(6, LocalTime.of(i, 2, 3, 4000));
                insert.setObject(7, LocalDateTime.of(2024, 1, 1 + i, 1, 2, 3));
                insert.setBytes(8, new byte[] {(byte) i, (byte) -i});
                insert.setObject(9, new UUID(1, i));
                insert.setDouble(10, i / 8.0);
                insert.setFloat(11, i / 8.0f);
                insert.setShort(12, (short) -i);
                insert.setLong(13, 1L << (i + 40));
                insert.setBoolean(14, i % 2 == 0);
                insert.setArray(15, connection.createArrayOf("text", new Object[] {"a" + i, null}));
                insert.executeUpdate();
            }
        }
        var some = "id, name, price, d, t, ts, b, u, f, r, s, l, ok, tags";
        try (var select = connection.prepareStatement("select " + some + " from item where id = ? and price >= ?")) {
            for (int i = 0; i < 12; i++) {
                select.setLong(1, i);
                select.setBigDecimal(2, BigDecimal.ZERO);
                rows("item " + i, select.executeQuery());
                if (i == 8) {
                    // The table changes under a statement that the server keeps.
                    run(connection, "alter table item add column more int default 5");
                }
            }
        }
        try (var select = connection.prepareStatement("select ?, ? + 1, ? || 'x'")) {
            select.setString(1, "one");
            select.setInt(2, 2);
            select.setString(3, "three");
            rows("expressions", select.executeQuery());
            out.println(select.getParameterMetaData().getParameterCount() + " " + select.getParameterMetaData().getParameterTypeName(2));
        }
        try (var select = connection.prepareStatement("select count(*) from item where id = any (?)")) {
            select.setArray(1, connection.createArrayOf("int4", new Object[] {1, 2, 77}));
            rows("any", select.executeQuery());
        }
        var marks = "?,".repeat(29999) + "?";
        try (var select = connection.prepareStatement("select count(*) from item where id in (" + marks + ")")) {
            for (int i = 1; i <= 30000; i++) {
                select.setInt(i, i);
            }
            rows("30,000 parameters", select.executeQuery());
        }
    }

    static void batches(Connection connection) throws SQLException {
        out.println("# batches");
        run(connection, "create table batch (id serial primary key, n int not null, s text)");
        for (var rewrite : List.of("false", "true")) {
            try (var other = connect("reWriteBatchedInserts", rewrite)) {
                other.setAutoCommit(false);
                try (var insert = other.prepareStatement("insert into batch (n, s) values (?, ?)")) {
                    for (int i = 0; i < 1000; i++) {
                        insert.setInt(1, i);
                        insert.setString(2, i % 7 == 0 ? null : "row " + i);
                        insert.addBatch();
                    }
                    var counts = insert.executeBatch();
                    out.println(rewrite + " " + counts.length + " " + counts[0]);
                }
                other.commit();
            }
        }
        rows("sums", connection.createStatement().executeQuery("select count(*), sum(n), count(s) from batch"));
        try (var insert = connection.prepareStatement("insert into batch (n) values (?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 0; i < 3; i++) {
                insert.setInt(1, i);
                insert.addBatch();
            }
            out.println(Arrays.toString(insert.executeBatch()));
            rows("keys", insert.getGeneratedKeys(), "id", "n");
        }
        connection.setAutoCommit(false);
        try (var insert = connection.prepareStatement("insert into batch (id, n) values (?, ?)")) {
            for (int i = 0; i < 3; i++) {
                insert.setInt(1, 100000 + i % 2);
                insert.setInt(2, i);
                insert.addBatch();
            }
            insert.executeBatch();
        } catch (BatchUpdateException error) {
            out.println(Arrays.toString(error.getUpdateCounts()) + " " + error((SQLException) error.getCause()));
        }
        connection.rollback();
        connection.setAutoCommit(true);
        try (var statement = connection.createStatement()) {
            statement.addBatch("update batch set n = n + 1 where id <= 10");
            statement.addBatch("delete from batch where id <= 3");
            out.println(Arrays.toString(statement.executeBatch()));
            boolean set = statement.execute("select 1 as a; update batch set n = 0 where id = 5; select 'two' as b");
            while (set || statement.getUpdateCount() >= 0) {
                if (set) {
                    rows("a set", statement.getResultSet());
                } else {
                    out.println("count " + statement.getUpdateCount());
                }
                set = statement.getMoreResults();
            }
        }
        connection.setAutoCommit(false);
        try (var select = connection.prepareStatement("select id from batch order by id")) {
            select.setFetchSize(100);
            long sum = 0;
            int rows = 0;
            try (var set = select.executeQuery()) {
                while (set.next()) {
                    sum += set.getInt(1);
                    rows++;
                }
            }
            out.println("fetched " + rows + " " + sum);
        }
        connection.commit();
        connection.setAutoCommit(true);
        try (var statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
            var set = statement.executeQuery("select id, n, s from batch where id in (4, 5, 6) order by id");
            set.absolute(2);
            set.updateString("s", "by the result set");
            set.updateRow();
            set.moveToInsertRow();
            set.updateInt("id", 200000);
            set.updateInt("n", 9);
            set.insertRow();
            set.first();
            set.deleteRow();
        }
        rows("updated", connection.createStatement().executeQuery("select id, n, s from batch where id in (4, 5, 6, 200000) order by id"));
    }

    static void copies(Connection connection) throws Exception {
        out.println("# COPY");
        run(connection, "create table copied (id int, s text)");
        CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
        var text = "1\tone\n2\t\\N\n".getBytes(StandardCharsets.UTF_8);
        out.println(copy.copyIn("copy copied from stdin", new ByteArrayInputStream(text)));
        var csv = "3,\"a, b\"\n".repeat(5000).getBytes(StandardCharsets.UTF_8);
        out.println(copy.copyIn("copy copied from stdin (format csv)", new ByteArrayInputStream(csv)));
        var binary = new ByteArrayOutputStream();
        out.println(copy.copyOut("copy (select * from copied where id < 3 order by id) to stdout (format binary)", binary));
        out.println(HexFormat.of().formatHex(binary.toByteArray()));
        out.println(copy.copyIn("copy copied from stdin (format binary)", new ByteArrayInputStream(binary.toByteArray())));
        try {
            copy.copyIn("copy copied from stdin", new ByteArrayInputStream("x\ty\n".getBytes(StandardCharsets.UTF_8)));
        } catch (SQLException error) {
            out.println(error(error));
        }
        rows("copied", connection.createStatement().executeQuery("select id, count(*), count(s) from copied group by id order by id"));
    }

    static void errors(Connection connection) throws SQLException {
        out.println("# errors");
        run(connection, "create table parent (id int primary key, n int constraint positive check (n > 0))");
        run(connection, "create table child (id int primary key, p int constraint of_parent references parent)");
        run(connection, "insert into parent values (1, 1)");
        run(connection, "insert into child values (1, 1)");
        var statements = List.of("selec 1", "select 1/0", "select nope", "select * from nope", "insert into parent values (1, 1)",
            "insert into parent values (2, -1)", "insert into parent values (null, 1)", "insert into child values (2, 2)", "delete from parent",
            "select 'x'::int", "select nope(1)", "select '2024-02-30'::date", "update parent set n = 3000000000 where id = 1");
        for (var sql : statements) {
            try {
                run(connection, sql);
                out.println(sql + " -> no error");
            } catch (SQLException error) {
                out.println(sql + " -> " + error(error));
            }
        }
        try (var select = connection.prepareStatement("select * from parent where id = ?")) {
            select.setString(1, "one");
            select.executeQuery();
        } catch (SQLException error) {
            out.println(error(error));
        }
        try (var statement = connection.createStatement()) {
            statement.execute("drop table if exists nope");
            out.println(statement.getWarnings().getSQLState() + " " + statement.getWarnings().getMessage());
        }
    }

    static void transactions(Connection connection) throws SQLException {
        out.println("# transactions");
        connection.setAutoCommit(false);
        run(connection, "update parent set n = 10");
        Savepoint savepoint = connection.setSavepoint("a \"point\"");
        run(connection, "update parent set n = 20");
        connection.rollback(savepoint);
        Savepoint other = connection.setSavepoint();
        connection.releaseSavepoint(other);
        connection.commit();
        rows("after a savepoint", connection.createStatement().executeQuery("select * from parent"));
        try {
            run(connection, "select 1/0");
        } catch (SQLException error) {
            out.println(error(error));
        }
        try {
            run(connection, "select 1");
        } catch (SQLException error) {
            out.println(error(error));
        }
        connection.rollback();
        connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        connection.setReadOnly(true);
        rows("settings", connection.createStatement().executeQuery(
            "select current_setting('transaction_isolation'), current_setting('transaction_read_only')"));
        try {
            run(connection, "update parent set n = 30");
        } catch (SQLException error) {
            out.println(error(error));
        }
        connection.rollback();
        connection.setReadOnly(false);
        rows("a snapshot", connection.createStatement().executeQuery("select * from parent"));
        try (var second = connect()) {
            run(second, "update parent set n = 40");
        }
        rows("the same", connection.createStatement().executeQuery("select * from parent"));
        try {
            run(connection, "update parent set n = 50");
        } catch (SQLException error) {
            out.println(error(error));
        }
        connection.rollback();
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        connection.setAutoCommit(true);
        // What fails in a transaction rolls back to a savepoint of the driver's own.
        try (var careful = connect("autosave", "always")) {
            careful.setAutoCommit(false);
            run(careful, "update parent set n = 60");
            try {
                run(careful, "select 1/0");
            } catch (SQLException error) {
                out.println(error(error));
            }
            careful.commit();
        }
        rows("autosave", connection.createStatement().executeQuery("select * from parent"));
    }

    static void cancelling(Connection connection) throws Exception {
        out.println("# cancelling");
        try (var other = connect(); var statement = other.createStatement()) {
            int pid = other.unwrap(PGConnection.class).getBackendPID();
            var said = new String[1];
            var thread = new Thread(() -> {
                try {
                    statement.execute("select pg_sleep(600)");
                    said[0] = "no error";
                } catch (SQLException error) {
                    said[0] = error(error);
                }
            });
            thread.start();
            while (true) {
                try (var set = connection.createStatement().executeQuery("select 1 from pg_stat_activity where state = 'active' and pid = " + pid)) {
                    if (set.next()) {
                        break;
                    }
                }
                Thread.sleep(10);
            }
            statement.cancel();
            thread.join();
            out.println(said[0]);
            statement.setQueryTimeout(1);
            try {
                statement.execute("select pg_sleep(600)");
            } catch (SQLException error) {
                out.println(error(error));
            }
            rows("goes on", statement.executeQuery("select 1"));
        }
    }

    static void metadata(Connection connection) throws SQLException {
        out.println("# metadata");
        run(connection, "create schema shop");
        run(connection, "create table shop.customer (id bigint generated always as identity primary key, email varchar(80) not null unique,"
            + " name text default 'no name', balance numeric(12,2) default 0 check (balance >= 0), since timestamptz(3) default now(), \"Odd name\" char(3))");
        run(connection, "create table shop.order_line (order_id int, line smallint, customer bigint not null,"
            + " kept integer[], primary key (line, order_id), constraint of_customer foreign key (customer) references shop.customer (id)"
            + " on delete cascade on update restrict)");
        run(connection, "create table shop.shipment (a smallint, b int, constraint of_line foreign key (a, b) references shop.order_line on delete set null)");
        run(connection, "create index line_customer on shop.order_line (customer desc, order_id)");
        run(connection, "create unique index on shop.shipment (b)");
        run(connection, "create view shop.rich as select id, name from shop.customer where balance > 1000");
        run(connection, "create sequence shop.numbers");
        DatabaseMetaData meta = connection.getMetaData();
        rows("getTables", meta.getTables(null, "shop", "%", null), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE", "REMARKS");
        rows("getTables, tables and views", meta.getTables(null, "shop", "%", new String[] {"TABLE", "VIEW"}), "TABLE_NAME", "TABLE_TYPE");
        rows("getTables by pattern", meta.getTables(null, null, "order\\_l%", new String[] {"TABLE"}), "TABLE_SCHEM", "TABLE_NAME");
        rows("getColumns", meta.getColumns(null, "shop", "%", "%"), "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE",
            "DECIMAL_DIGITS", "NUM_PREC_RADIX", "NULLABLE", "REMARKS", "COLUMN_DEF", "CHAR_OCTET_LENGTH", "ORDINAL_POSITION", "IS_NULLABLE",
            "IS_AUTOINCREMENT", "IS_GENERATEDCOLUMN");
        for (var table : List.of("customer", "order_line", "shipment")) {
            rows("getPrimaryKeys " + table, meta.getPrimaryKeys(null, "shop", table), "COLUMN_NAME", "KEY_SEQ", "PK_NAME");
            rows("getIndexInfo " + table, meta.getIndexInfo(null, "shop", table, false, false), "NON_UNIQUE", "INDEX_NAME", "TYPE",
                "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC", "FILTER_CONDITION");
            rows("getImportedKeys " + table, meta.getImportedKeys(null, "shop", table), "PKTABLE_SCHEM", "PKTABLE_NAME", "PKCOLUMN_NAME",
                "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "UPDATE_RULE", "DELETE_RULE", "FK_NAME", "PK_NAME", "DEFERRABILITY");
            rows("getExportedKeys " + table, meta.getExportedKeys(null, "shop", table), "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "FK_NAME");
            rows("getBestRowIdentifier " + table, meta.getBestRowIdentifier(null, "shop", table, DatabaseMetaData.bestRowSession, true), "COLUMN_NAME", "TYPE_NAME");
            rows("getVersionColumns " + table, meta.getVersionColumns(null, "shop", table), "COLUMN_NAME");
            rows("getTablePrivileges " + table, meta.getTablePrivileges(null, "shop", table), "GRANTOR", "GRANTEE", "PRIVILEGE", "IS_GRANTABLE");
        }
        rows("getCrossReference", meta.getCrossReference(null, "shop", "order_line", null, "shop", "shipment"), "PKCOLUMN_NAME", "FKCOLUMN_NAME", "KEY_SEQ");
        rows("getColumnPrivileges", meta.getColumnPrivileges(null, "shop", "customer", "name"), "COLUMN_NAME", "GRANTEE", "PRIVILEGE");
        rows("getSchemas", meta.getSchemas(null, "shop"), "TABLE_SCHEM");
        run(connection, "create temp table passing (i int)");
        var schemas = new ArrayList<String>();
        try (var set = meta.getSchemas()) {
            while (set.next()) {
                schemas.add(set.getString("TABLE_SCHEM").replaceAll("[0-9]+$", "N"));
            }
        }
        out.println("getSchemas, all " + schemas.containsAll(List.of("information_schema", "pg_catalog", "pg_temp_N", "public", "shop")));
        var catalogs = new ArrayList<String>();
        try (var set = meta.getCatalogs()) {
            while (set.next()) {
                catalogs.add(set.getString("TABLE_CAT"));
            }
        }
        out.println("getCatalogs " + catalogs.contains(connection.getCatalog()));
        rows("getTables, temporary", meta.getTables(null, null, "passing", null), "TABLE_NAME", "TABLE_TYPE");
        rows("getFunctions", meta.getFunctions(null, "pg_catalog", "pg\\_get\\_userbyid"), "FUNCTION_CAT", "FUNCTION_SCHEM", "FUNCTION_NAME", "FUNCTION_TYPE", "SPECIFIC_NAME");
        rows("getFunctionColumns", meta.getFunctionColumns(null, "pg_catalog", "pg\\_get\\_userbyid", "%"), "COLUMN_NAME", "COLUMN_TYPE", "DATA_TYPE", "TYPE_NAME", "ORDINAL_POSITION");
        rows("getProcedureColumns", meta.getProcedureColumns(null, "pg_catalog", "quote\\_ident", "%"), "COLUMN_NAME", "COLUMN_TYPE", "DATA_TYPE", "TYPE_NAME");
        rows("getUDTs", meta.getUDTs(null, "shop", "%", new int[] {Types.DISTINCT}), "TYPE_NAME");
        out.println("getSQLKeywords " + meta.getSQLKeywords());
        rows("getTableTypes", meta.getTableTypes());
        rows("getProcedures", meta.getProcedures(null, "shop", "%"), "PROCEDURE_NAME");
        var known = List.of("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar", "bytea", "date", "time",
            "timestamp", "timestamptz", "interval", "uuid", "jsonb");
        out.println("getTypeInfo");
        try (var set = meta.getTypeInfo()) {
            while (set.next()) {
                if (known.contains(set.getString("TYPE_NAME"))) {
                    out.println("  " + set.getString("TYPE_NAME") + " " + set.getInt("DATA_TYPE") + " " + set.getString("PRECISION")
                        + " " + set.getBoolean("CASE_SENSITIVE") + " " + set.getBoolean("AUTO_INCREMENT"));
                }
            }
        }
        try (var call = connection.prepareCall("{? = call upper(?)}")) {
            call.registerOutParameter(1, Types.VARCHAR);
            call.setString(2, "called");
            call.execute();
            out.println("call " + call.getString(1));
        }
        try (var call = connection.prepareCall("{? = call length(?)}")) {
            call.registerOutParameter(1, Types.INTEGER);
            call.setString(2, "called");
            call.execute();
            out.println("call " + call.getInt(1));
        }
        try (var select = connection.createStatement(); var set = select.executeQuery(
                "select {fn ucase('x')}, {d '2024-01-01'}, {fn concat('a', 'b')}, {fn year({d '2024-05-06'})}, {fn length('abc')}")) {
            rows("escapes", set);
        }
        try (var select = connection.prepareStatement("select c.id, c.email as mail, l.line, 1 + 1 from shop.customer c join shop.order_line l on l.customer = c.id")) {
            ResultSetMetaData columns = select.getMetaData();
            for (int i = 1; i <= columns.getColumnCount(); i++) {
                out.println(columns.getColumnLabel(i) + " " + columns.getColumnName(i) + " " + columns.getTableName(i) + " " + columns.getSchemaName(i)
                    + " " + columns.getColumnTypeName(i) + " " + columns.isNullable(i) + " " + columns.isAutoIncrement(i));
            }
        }
    }

    static void enums(Connection connection) throws SQLException {
        out.println("# enums");
        run(connection, "create type mood as enum ('sad', 'ok', 'happy')");
        run(connection, "create table moods (id int primary key, mood mood, many mood[])");
        try (var insert = connection.prepareStatement("insert into moods values (?, ?, ?)")) {
            for (int i = 1; i <= 7; i++) {
                insert.setInt(1, i);
                insert.setObject(2, i % 2 == 0 ? "sad" : "happy", Types.OTHER);
                insert.setArray(3, connection.createArrayOf("mood", new String[] {"ok", null}));
                insert.executeUpdate();
            }
        }
        try (var select = connection.prepareStatement("select mood, many from moods where mood = ?::mood and id < 3 order by mood")) {
            for (int i = 0; i < 7; i++) {
                select.setString(1, i % 2 == 0 ? "sad" : "happy");
                try (var set = select.executeQuery()) {
                    while (set.next()) {
                        out.println(set.getString(1) + " " + set.getObject(1).getClass().getSimpleName() + " "
                            + java.util.Arrays.toString((Object[]) set.getArray(2).getArray()) + " " + set.getMetaData().getColumnTypeName(1)
                            + " " + set.getMetaData().getColumnType(1) + " " + set.getMetaData().getColumnTypeName(2));
                    }
                }
            }
        }
        rows("getColumns", connection.getMetaData().getColumns(null, "public", "moods", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE");
        try (var insert = connection.prepareStatement("insert into moods values (9, ?)")) {
            insert.setString(1, "sad");
            insert.executeUpdate();
        } catch (SQLException error) {
            out.println(error.getSQLState() + " " + error.getMessage().lines().findFirst().orElse(""));
        }
        run(connection, "drop table moods");
        run(connection, "drop type mood");
    }

    public static void main(String[] arguments) throws Exception {
        out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        java.util.TimeZone.setDefault(java.util.TimeZone.getTimeZone("UTC"));
        connecting();
        types(Path.of(arguments[0]));
        try (var connection = connect()) {
            run(connection, "set timezone = 'UTC'");
            prepared(connection);
            batches(connection);
            copies(connection);
            errors(connection);
            transactions(connection);
            cancelling(connection);
            metadata(connection);
            enums(connection);
        }
    }
}
