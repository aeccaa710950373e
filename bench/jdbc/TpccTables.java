import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.List;

/** The tables of TPC-C (clause 1.3), their population (4.3) and consistency conditions (3.3.2). */
final class TpccTables {
    static final int WAREHOUSES = 4;
    static final int DISTRICTS = 10;
    static final int CUSTOMERS = 3_000;
    static final int ITEMS = 100_000;
    /** Orders of a district that are delivered when all begins; the others are open. */
    private static final int DELIVERED = 2_100;
    /** Constant C of NURand for the last names. */
    private static final int LAST_NAMES = 157;

    private static final String ADDRESS = "$_street_1 varchar(20), $_street_2 varchar(20), $_city varchar(20), $_state char(2), $_zip char(9)";

    private static final String[] TABLES = {
        "warehouse (w_id integer, w_ytd numeric(12,2), w_tax numeric(4,4), w_name varchar(10), " + ADDRESS.replace('$', 'w') + ", PRIMARY KEY (w_id))",
        "district (d_w_id integer, d_id integer, d_ytd numeric(12,2), d_tax numeric(4,4), d_next_o_id integer, d_name varchar(10), "
            + ADDRESS.replace('$', 'd') + ", PRIMARY KEY (d_w_id, d_id))",
        "customer (c_w_id integer, c_d_id integer, c_id integer, c_discount numeric(4,4), c_credit char(2), c_last varchar(16), c_first varchar(16), "
            + "c_credit_lim numeric(12,2), c_balance numeric(12,2), c_ytd_payment numeric(12,2), c_payment_cnt integer, c_delivery_cnt integer, "
            + ADDRESS.replace('$', 'c') + ", c_phone char(16), c_since timestamp, c_middle char(2), c_data varchar(500), PRIMARY KEY (c_w_id, c_d_id, c_id))",
        "history (h_c_id integer, h_c_d_id integer, h_c_w_id integer, h_d_id integer, h_w_id integer, h_date timestamp, h_amount numeric(6,2), h_data varchar(24))",
        "new_order (no_w_id integer, no_d_id integer, no_o_id integer, PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
        "orders (o_w_id integer, o_d_id integer, o_id integer, o_c_id integer, o_carrier_id integer, o_ol_cnt integer, o_all_local integer, o_entry_d timestamp, "
            + "PRIMARY KEY (o_w_id, o_d_id, o_id))",
        "order_line (ol_w_id integer, ol_d_id integer, ol_o_id integer, ol_number integer, ol_i_id integer, ol_delivery_d timestamp, ol_amount numeric(6,2), "
            + "ol_supply_w_id integer, ol_quantity integer, ol_dist_info char(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
        "item (i_id integer, i_name varchar(24), i_price numeric(5,2), i_data varchar(50), i_im_id integer, PRIMARY KEY (i_id))",
        "stock (s_w_id integer, s_i_id integer, s_quantity integer, s_ytd numeric(8,2), s_order_cnt integer, s_remote_cnt integer, s_data varchar(50), "
            + "s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), "
            + "s_dist_08 char(24), s_dist_09 char(24), s_dist_10 char(24), PRIMARY KEY (s_w_id, s_i_id))",
    };

    private static final String[] INDEXES = {
        "CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first)",
        "CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
    };

    /** Each condition's number, and a query that counts what breaks it. */
    private static final String[][] CONDITIONS = {
        {"1 (w_ytd is the sum of d_ytd)",
            "SELECT count(*) FROM warehouse WHERE w_ytd <> (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)"},
        {"2 (d_next_o_id follows the newest order)",
            "SELECT count(*) FROM district d JOIN (SELECT o_w_id, o_d_id, max(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) o "
                + "ON o_w_id = d_w_id AND o_d_id = d_id WHERE d_next_o_id - 1 <> newest"},
        {"3 (no gap in open orders)",
            "SELECT count(*) FROM (SELECT 1 AS gap FROM new_order GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) gaps"},
        {"4 (orders have their lines)",
            "SELECT count(*) FROM orders o LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS lines FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) l "
                + "ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE lines IS NULL OR lines <> o_ol_cnt"},
        {"7 (lines of open orders, and they alone, have no delivery)",
            "SELECT count(*) FROM order_line JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id "
                + "WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)"},
        {"8 (w_ytd is the sum of its payments)",
            "SELECT count(*) FROM warehouse JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) h ON h_w_id = w_id WHERE w_ytd <> paid"},
    };

    private final Connection connection;
    private final Draw draw = new Draw(1);
    private final Timestamp now = new Timestamp(System.currentTimeMillis());

    private TpccTables(Connection connection) {
        this.connection = connection;
    }

    static List<String> broken(Connection connection) throws SQLException {
        return Main.broken(connection, CONDITIONS);
    }

    static void load(Connection connection) throws SQLException {
        for (var table : TABLES) {
            var name = table.substring(0, table.indexOf(' '));
            Main.execute(connection, "DROP TABLE IF EXISTS " + name, "CREATE TABLE " + table);
        }
        var tables = new TpccTables(connection);
        tables.items();
        tables.warehouses();
        tables.customers();
        tables.orders();
        Main.execute(connection, INDEXES);
        Main.execute(connection, "VACUUM ANALYZE");
    }

    private String decimal(int low, int high, int scale) {
        var digits = String.format("%0" + (scale + 1) + "d", draw.between(low, high));
        int point = digits.length() - scale;
        return digits.substring(0, point) + "." + digits.substring(point);
    }

    private String zip() {
        return draw.digits(4) + "11111";
    }

    private void items() throws SQLException {
        var copy = new Copy(connection, "item");
        for (int i = 1; i <= ITEMS; i++) {
            copy.row(i, draw.letters(14, 24), decimal(100, 10_000, 2), draw.brand(), draw.between(1, 10_000));
        }
        copy.end();
    }

    private void warehouses() throws SQLException {
        var copy = new Copy(connection, "warehouse");
        for (int w = 1; w <= WAREHOUSES; w++) {
            copy.row(w, "300000.00", decimal(0, 2_000, 4), draw.letters(6, 10), draw.letters(10, 20), draw.letters(10, 20), draw.letters(10, 20),
                draw.capitals(2), zip());
        }
        copy.end();
        copy = new Copy(connection, "district");
        for (int w = 1; w <= WAREHOUSES; w++) {
            for (int d = 1; d <= DISTRICTS; d++) {
                copy.row(w, d, "30000.00", decimal(0, 2_000, 4), CUSTOMERS + 1, draw.letters(6, 10), draw.letters(10, 20), draw.letters(10, 20),
                    draw.letters(10, 20), draw.capitals(2), zip());
            }
        }
        copy.end();
        copy = new Copy(connection, "stock");
        for (int w = 1; w <= WAREHOUSES; w++) {
            for (int i = 1; i <= ITEMS; i++) {
                var row = new Object[17];
                row[0] = w;
                row[1] = i;
                row[2] = draw.between(10, 100);
                row[3] = "0.00";
                row[4] = 0;
                row[5] = 0;
                row[6] = draw.brand();
                for (int d = 7; d < row.length; d++) {
                    row[d] = draw.letters(24, 24);
                }
                copy.row(row);
            }
        }
        copy.end();
    }

    private void customers() throws SQLException {
        var copy = new Copy(connection, "customer");
        for (int w = 1; w <= WAREHOUSES; w++) {
            for (int d = 1; d <= DISTRICTS; d++) {
                for (int c = 1; c <= CUSTOMERS; c++) {
                    int name = c <= 1_000 ? c - 1 : draw.nonUniform(255, LAST_NAMES, 0, 999);
                    copy.row(w, d, c, decimal(0, 5_000, 4), draw.percent(10) ? "BC" : "GC", Draw.lastName(name), draw.letters(8, 16), "50000.00", "-10.00",
                        "10.00", 1, 0, draw.letters(10, 20), draw.letters(10, 20), draw.letters(10, 20), draw.capitals(2), zip(), draw.digits(16), now, "OE",
                        draw.letters(300, 500));
                }
            }
        }
        copy.end();
        copy = new Copy(connection, "history");
        for (int w = 1; w <= WAREHOUSES; w++) {
            for (int d = 1; d <= DISTRICTS; d++) {
                for (int c = 1; c <= CUSTOMERS; c++) {
                    copy.row(c, d, w, d, w, now, "10.00", draw.letters(12, 24));
                }
            }
        }
        copy.end();
    }

    /** Each customer's order, in a random order; numbers of lines are those that their lines are loaded with. */
    private void orders() throws SQLException {
        var lines = new int[WAREHOUSES * DISTRICTS * CUSTOMERS];
        var copy = new Copy(connection, "orders");
        for (int at = 0; at < lines.length;) {
            var customers = permutation();
            for (int o = 1; o <= CUSTOMERS; o++, at++) {
                lines[at] = draw.between(5, 15);
                Integer carrier = o <= DELIVERED ? draw.between(1, 10) : null;
                copy.row(warehouse(at), district(at), o, customers[o - 1], carrier, lines[at], 1, now);
            }
        }
        copy.end();
        copy = new Copy(connection, "new_order");
        for (int at = 0; at < lines.length; at++) {
            if (order(at) > DELIVERED) {
                copy.row(warehouse(at), district(at), order(at));
            }
        }
        copy.end();
        copy = new Copy(connection, "order_line");
        for (int at = 0; at < lines.length; at++) {
            boolean delivered = order(at) <= DELIVERED;
            for (int line = 1; line <= lines[at]; line++) {
                copy.row(warehouse(at), district(at), order(at), line, draw.between(1, ITEMS), delivered ? now : null,
                    delivered ? "0.00" : decimal(1, 999_999, 2), warehouse(at), 5, draw.letters(24, 24));
            }
        }
        copy.end();
    }

    private static int warehouse(int at) {
        return at / (DISTRICTS * CUSTOMERS) + 1;
    }

    private static int district(int at) {
        return at / CUSTOMERS % DISTRICTS + 1;
    }

    private static int order(int at) {
        return at % CUSTOMERS + 1;
    }

    private int[] permutation() {
        var customers = new int[CUSTOMERS];
        for (int c = 0; c < CUSTOMERS; c++) {
            int other = draw.between(0, c);
            customers[c] = customers[other];
            customers[other] = c + 1;
        }
        return customers;
    }
}
