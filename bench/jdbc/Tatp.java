import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import java.util.Set;

/**
 * TATP (description 1.0): four tables of a home location register and seven short transactions, with its population and non-uniform subscribers.
 *
 * <p>Transactions of one statement are committed by the statement. Those that find no row, or meet one that they would insert, fail as the description lets them.
 */
final class Tatp implements Workload {
    private static final int SUBSCRIBERS = 100_000;
    /** The constant A of the description for so many subscribers. */
    private static final int SKEW = 65_535;
    private static final int[] STARTS = {0, 8, 16};

    private static final List<String> KINDS = List.of("get_subscriber_data", "get_new_destination", "get_access_data", "update_subscriber_data",
        "update_location", "insert_call_forwarding", "delete_call_forwarding");
    private static final int[] SHARES = {35, 10, 35, 2, 14, 2, 2};

    private static final String[] TABLES = {
        "subscriber (s_id integer, sub_nbr varchar(15) NOT NULL, " + ten("bit_", "smallint") + ten("hex_", "smallint") + ten("byte2_", "smallint")
            + "msc_location integer, vlr_location integer, PRIMARY KEY (s_id))",
        "access_info (s_id integer, ai_type smallint, data1 smallint, data2 smallint, data3 char(3), data4 char(5), PRIMARY KEY (s_id, ai_type))",
        "special_facility (s_id integer, sf_type smallint, is_active smallint, error_cntrl smallint, data_a smallint, data_b char(5), "
            + "PRIMARY KEY (s_id, sf_type))",
        "call_forwarding (s_id integer, sf_type smallint, start_time smallint, end_time smallint, numberx varchar(15), "
            + "PRIMARY KEY (s_id, sf_type, start_time))",
    };

    private static final String[] KEYS = {
        "CREATE UNIQUE INDEX subscriber_by_number ON subscriber (sub_nbr)",
        "ALTER TABLE access_info ADD FOREIGN KEY (s_id) REFERENCES subscriber (s_id)",
        "ALTER TABLE special_facility ADD FOREIGN KEY (s_id) REFERENCES subscriber (s_id)",
        "ALTER TABLE call_forwarding ADD FOREIGN KEY (s_id, sf_type) REFERENCES special_facility (s_id, sf_type)",
    };

    private static final String[][] RULES = {
        {"all subscribers are there", "SELECT " + SUBSCRIBERS + " - count(*) FROM subscriber WHERE sub_nbr = lpad(s_id::text, 15, '0')"},
        {"call forwardings have their facility",
            "SELECT count(*) FROM call_forwarding c LEFT JOIN special_facility f ON f.s_id = c.s_id AND f.sf_type = c.sf_type WHERE f.s_id IS NULL"},
    };

    private static String ten(String name, String type) {
        var columns = new StringBuilder();
        for (int i = 1; i <= 10; i++) {
            columns.append(name).append(i).append(' ').append(type).append(", ");
        }
        return columns.toString();
    }

    private static String number(int s) {
        return String.format("%015d", s);
    }

    @Override
    public List<String> kinds() {
        return KINDS;
    }

    @Override
    public List<String> check(Connection connection) throws SQLException {
        return Main.broken(connection, RULES);
    }

    @Override
    public void load(Connection connection) throws SQLException {
        for (int table = TABLES.length - 1; table >= 0; table--) {
            Main.execute(connection, "DROP TABLE IF EXISTS " + TABLES[table].substring(0, TABLES[table].indexOf(' ')));
        }
        for (var table : TABLES) {
            Main.execute(connection, "CREATE TABLE " + table);
        }
        var draw = new Draw(1);
        var copy = new Copy(connection, "subscriber");
        for (int s = 1; s <= SUBSCRIBERS; s++) {
            var row = new Object[34];
            row[0] = s;
            row[1] = number(s);
            for (int i = 0; i < 10; i++) {
                row[2 + i] = draw.between(0, 1);
                row[12 + i] = draw.between(0, 15);
                row[22 + i] = draw.between(0, 255);
            }
            row[32] = location(draw);
            row[33] = location(draw);
            copy.row(row);
        }
        copy.end();
        copy = new Copy(connection, "access_info");
        for (int s = 1; s <= SUBSCRIBERS; s++) {
            for (int type : some(draw, 1, new int[] {1, 2, 3, 4})) {
                copy.row(s, type, draw.between(0, 255), draw.between(0, 255), draw.capitals(3), draw.capitals(5));
            }
        }
        copy.end();
        // A row of the one belongs to rows of the other, so the same sequence is drawn for both.
        facilities(new Copy(connection, "special_facility"), true);
        facilities(new Copy(connection, "call_forwarding"), false);
        Main.execute(connection, KEYS);
        Main.execute(connection, "VACUUM ANALYZE");
    }

    private static void facilities(Copy copy, boolean themselves) throws SQLException {
        var draw = new Draw(2);
        for (int s = 1; s <= SUBSCRIBERS; s++) {
            for (int type : some(draw, 1, new int[] {1, 2, 3, 4})) {
                var facility = new Object[] {s, type, draw.percent(85) ? 1 : 0, draw.between(0, 255), draw.between(0, 255), draw.capitals(5)};
                if (themselves) {
                    copy.row(facility);
                }
                for (int start : some(draw, 0, STARTS)) {
                    var forwarding = new Object[] {s, type, start, start + draw.between(1, 8), draw.digits(15)};
                    if (!themselves) {
                        copy.row(forwarding);
                    }
                }
            }
        }
        copy.end();
    }

    /** At least so many of the values, ascending; each number of them is as likely. */
    private static int[] some(Draw draw, int least, int[] of) {
        int wanted = draw.between(least, of.length);
        var chosen = new int[wanted];
        int count = 0;
        for (int at = 0; count < wanted; at++) {
            if (draw.between(1, of.length - at) <= wanted - count) {
                chosen[count++] = of[at];
            }
        }
        return chosen;
    }

    private static int location(Draw draw) {
        return draw.between(1, Integer.MAX_VALUE - 1);
    }

    @Override
    public Workload.Client client(Connection connection, int number, Draw draw) throws SQLException {
        return new Caller(connection, draw);
    }

    private static final class Caller implements Workload.Client {
        /** A row that is there, or whose parent is not. */
        private static final Set<String> FAILS = Set.of("23505", "23503");

        private final Connection connection;
        private final Draw draw;

        private final PreparedStatement subscriber;
        private final PreparedStatement destination;
        private final PreparedStatement access;
        private final PreparedStatement setBit;
        private final PreparedStatement setData;
        private final PreparedStatement setLocation;
        private final PreparedStatement byNumber;
        private final PreparedStatement facilities;
        private final PreparedStatement insertForwarding;
        private final PreparedStatement deleteForwarding;

        // What was drawn.
        private int kind;
        private int s;
        private String number;
        private int type;
        private int start;
        private int end;
        private int value;
        private int location;
        private String destinationNumber;

        Caller(Connection connection, Draw draw) throws SQLException {
            this.connection = connection;
            this.draw = draw;
            subscriber = connection.prepareStatement("SELECT * FROM subscriber WHERE s_id = ?");
            destination = connection.prepareStatement("SELECT cf.numberx FROM special_facility AS sf, call_forwarding AS cf WHERE sf.s_id = ? AND sf.sf_type = ? "
                + "AND sf.is_active = 1 AND cf.s_id = sf.s_id AND cf.sf_type = sf.sf_type AND cf.start_time <= ? AND ? < cf.end_time");
            access = connection.prepareStatement("SELECT data1, data2, data3, data4 FROM access_info WHERE s_id = ? AND ai_type = ?");
            setBit = connection.prepareStatement("UPDATE subscriber SET bit_1 = ? WHERE s_id = ?");
            setData = connection.prepareStatement("UPDATE special_facility SET data_a = ? WHERE s_id = ? AND sf_type = ?");
            setLocation = connection.prepareStatement("UPDATE subscriber SET vlr_location = ? WHERE sub_nbr = ?");
            byNumber = connection.prepareStatement("SELECT s_id FROM subscriber WHERE sub_nbr = ?");
            facilities = connection.prepareStatement("SELECT sf_type FROM special_facility WHERE s_id = ?");
            insertForwarding = connection.prepareStatement(
                "INSERT INTO call_forwarding (s_id, sf_type, start_time, end_time, numberx) VALUES (?, ?, ?, ?, ?)");
            deleteForwarding = connection.prepareStatement("DELETE FROM call_forwarding WHERE s_id = ? AND sf_type = ? AND start_time = ?");
        }

        @Override
        public int draw() {
            int left = draw.between(0, 99);
            for (kind = 0; left >= SHARES[kind]; kind++) {
                left -= SHARES[kind];
            }
            s = draw.nonUniform(SKEW, 0, 1, SUBSCRIBERS);
            number = number(s);
            type = draw.between(1, 4);
            start = STARTS[draw.between(0, 2)];
            end = draw.between(1, 24);
            value = draw.between(0, 255);
            location = Tatp.location(draw);
            destinationNumber = draw.digits(15);
            return kind;
        }

        @Override
        public boolean attempt() throws SQLException {
            return switch (KINDS.get(kind)) {
                case "get_subscriber_data" -> {
                    subscriber.setInt(1, s);
                    yield reads(subscriber, 34);
                }
                case "get_new_destination" -> {
                    bind(destination, s, type, start, end);
                    yield reads(destination, 1);
                }
                case "get_access_data" -> {
                    bind(access, s, type);
                    yield reads(access, 4);
                }
                case "update_location" -> {
                    setLocation.setInt(1, location);
                    setLocation.setString(2, number);
                    yield setLocation.executeUpdate() == 1;
                }
                default -> several();
            };
        }

        /** The transactions of several statements. */
        private boolean several() throws SQLException {
            connection.setAutoCommit(false);
            boolean done = false;
            try {
                done = switch (KINDS.get(kind)) {
                    case "update_subscriber_data" -> updateSubscriber();
                    case "insert_call_forwarding" -> insertForwarding();
                    default -> deleteForwarding();
                };
                if (done) {
                    connection.commit();
                }
            } catch (SQLException error) {
                if (!FAILS.contains(error.getSQLState())) {
                    throw error;
                }
            } finally {
                if (!done) {
                    connection.rollback();
                }
                connection.setAutoCommit(true);
            }
            return done;
        }

        private static void bind(PreparedStatement statement, int... values) throws SQLException {
            for (int i = 0; i < values.length; i++) {
                statement.setInt(i + 1, values[i]);
            }
        }

        /** Reads all columns of all rows; whether there was a row. */
        private static boolean reads(PreparedStatement statement, int columns) throws SQLException {
            boolean found = false;
            try (var rows = statement.executeQuery()) {
                for (; rows.next(); found = true) {
                    for (int column = 1; column <= columns; column++) {
                        rows.getString(column);
                    }
                }
            }
            return found;
        }

        private int find() throws SQLException {
            byNumber.setString(1, number);
            try (var rows = byNumber.executeQuery()) {
                if (!rows.next() || rows.getInt(1) != s) {
                    throw new SQLException("subscriber " + s + " is missing");
                }
                return s;
            }
        }

        private boolean updateSubscriber() throws SQLException {
            bind(setBit, value & 1, s);
            if (setBit.executeUpdate() != 1) {
                throw new SQLException("subscriber " + s + " is missing");
            }
            bind(setData, value, s, type);
            return setData.executeUpdate() == 1;
        }

        private boolean insertForwarding() throws SQLException {
            int found = find();
            facilities.setInt(1, found);
            reads(facilities, 1);
            bind(insertForwarding, found, type, start, end);
            insertForwarding.setString(5, destinationNumber);
            return insertForwarding.executeUpdate() == 1;
        }

        private boolean deleteForwarding() throws SQLException {
            bind(deleteForwarding, find(), type, start);
            return deleteForwarding.executeUpdate() == 1;
        }
    }
}
