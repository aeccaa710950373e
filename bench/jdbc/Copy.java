import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyIn;

/** Rows on their way into a table, by COPY. */
final class Copy {
    private static final int CHUNK = 1 << 16;

    private final CopyIn copy;
    private final StringBuilder rows = new StringBuilder(2 * CHUNK);

    Copy(Connection connection, String table) throws SQLException {
        copy = connection.unwrap(PGConnection.class).getCopyAPI().copyIn("COPY " + table + " FROM STDIN");
    }

    /** No value may have a character that COPY escapes. */
    void row(Object... values) throws SQLException {
        for (int i = 0; i < values.length; i++) {
            if (i > 0) {
                rows.append('\t');
            }
            rows.append(values[i] == null ? "\\N" : values[i]);
        }
        rows.append('\n');
        if (rows.length() >= CHUNK) {
            send();
        }
    }

    private void send() throws SQLException {
        var bytes = rows.toString().getBytes(StandardCharsets.UTF_8);
        copy.writeToCopy(bytes, 0, bytes.length);
        rows.setLength(0);
    }

    void end() throws SQLException {
        send();
        copy.endCopy();
    }
}
