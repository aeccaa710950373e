import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;

/**
 * The five transactions of TPC-C (clauses 2.4 to 2.8), by the statements that BenchBase sends.
 *
 * <p>Differences to the specification: no think times, deliveries run at once. A terminal has a home warehouse, as there; its district is any. The items of an order
 * differ, since a stock row is written as it was read.
 */
final class Tpcc implements Workload {
    private static final List<String> KINDS = List.of("new_order", "payment", "order_status", "delivery", "stock_level");
    /** Shares of the kinds in a hundred, clause 5.2.3. */
    private static final int[] SHARES = {45, 43, 4, 4, 4};

    @Override
    public List<String> kinds() {
        return KINDS;
    }

    @Override
    public void load(Connection connection) throws SQLException {
        TpccTables.load(connection);
    }

    @Override
    public List<String> check(Connection connection) throws SQLException {
        return TpccTables.broken(connection);
    }

    @Override
    public Workload.Client client(Connection connection, int number, Draw draw) throws SQLException {
        return new Terminal(connection, number % TpccTables.WAREHOUSES + 1, draw);
    }

    /** A customer's columns that transactions read. */
    private record Customer(int id, String first, String last, String credit, BigDecimal balance, BigDecimal paid, int payments) {}

    private static final class Terminal implements Workload.Client {
        /** Constants C of NURand for a run; that of names has the distance to the load's that clause 2.1.6.1 asks for. */
        private static final int LAST_NAMES = 223;
        private static final int CUSTOMERS = 259;
        private static final int ITEMS = 7_911;
        /** No item has this number: the order that names it rolls back. */
        private static final int NO_ITEM = TpccTables.ITEMS + 1;

        private static final String CUSTOMER = " c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim, "
            + "c_discount, c_balance, c_ytd_payment, c_payment_cnt, c_since FROM customer WHERE c_w_id = ? AND c_d_id = ? AND ";

        private final Connection connection;
        private final int home;
        private final Draw draw;

        private final PreparedStatement orderCustomer;
        private final PreparedStatement warehouseTax;
        private final PreparedStatement lockDistrict;
        private final PreparedStatement nextOrder;
        private final PreparedStatement insertOrder;
        private final PreparedStatement insertNewOrder;
        private final PreparedStatement item;
        private final PreparedStatement lockStock;
        private final PreparedStatement insertLine;
        private final PreparedStatement updateStock;

        private final PreparedStatement payWarehouse;
        private final PreparedStatement warehouse;
        private final PreparedStatement payDistrict;
        private final PreparedStatement district;
        private final PreparedStatement customerById;
        private final PreparedStatement customersByName;
        private final PreparedStatement customerData;
        private final PreparedStatement payCustomer;
        private final PreparedStatement payBadCustomer;
        private final PreparedStatement insertHistory;

        private final PreparedStatement lastOrder;
        private final PreparedStatement lines;

        private final PreparedStatement oldest;
        private final PreparedStatement deleteNewOrder;
        private final PreparedStatement customerOfOrder;
        private final PreparedStatement setCarrier;
        private final PreparedStatement setDelivered;
        private final PreparedStatement total;
        private final PreparedStatement credit;

        private final PreparedStatement next;
        private final PreparedStatement low;

        // What was drawn.
        private int kind;
        private int d;
        private int customerWarehouse;
        private int customerDistrict;
        /** Null where the customer is named by number. */
        private String lastName;
        private int customer;
        private BigDecimal amount;
        private int carrier;
        private int threshold;
        private int[] items;
        private int[] suppliers;
        private int[] quantities;

        Terminal(Connection connection, int home, Draw draw) throws SQLException {
            this.connection = connection;
            this.home = home;
            this.draw = draw;
            connection.setAutoCommit(false);

            orderCustomer = connection.prepareStatement("SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?");
            warehouseTax = connection.prepareStatement("SELECT w_tax FROM warehouse WHERE w_id = ?");
            lockDistrict = connection.prepareStatement("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE");
            nextOrder = connection.prepareStatement("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?");
            insertOrder = connection.prepareStatement(
                "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, ?, ?, ?)");
            insertNewOrder = connection.prepareStatement("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)");
            item = connection.prepareStatement("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?");
            lockStock = connection.prepareStatement("SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, "
                + "s_dist_08, s_dist_09, s_dist_10 FROM stock WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE");
            insertLine = connection.prepareStatement("INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, "
                + "ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
            updateStock = connection.prepareStatement("UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, "
                + "s_remote_cnt = s_remote_cnt + ? WHERE s_i_id = ? AND s_w_id = ?");

            payWarehouse = connection.prepareStatement("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?");
            warehouse = connection.prepareStatement("SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = ?");
            payDistrict = connection.prepareStatement("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?");
            district = connection.prepareStatement("SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = ? AND d_id = ?");
            customerById = connection.prepareStatement("SELECT c_id," + CUSTOMER + "c_id = ?");
            customersByName = connection.prepareStatement("SELECT c_id," + CUSTOMER + "c_last = ? ORDER BY c_first");
            customerData = connection.prepareStatement("SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?");
            payCustomer = connection.prepareStatement(
                "UPDATE customer SET c_balance = ?, c_ytd_payment = ?, c_payment_cnt = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?");
            payBadCustomer = connection.prepareStatement(
                "UPDATE customer SET c_balance = ?, c_ytd_payment = ?, c_payment_cnt = ?, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?");
            insertHistory = connection.prepareStatement(
                "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");

            lastOrder = connection.prepareStatement(
                "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1");
            lines = connection.prepareStatement("SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line "
                + "WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?");

            oldest = connection.prepareStatement("SELECT no_o_id FROM new_order WHERE no_d_id = ? AND no_w_id = ? ORDER BY no_o_id ASC LIMIT 1");
            deleteNewOrder = connection.prepareStatement("DELETE FROM new_order WHERE no_o_id = ? AND no_d_id = ? AND no_w_id = ?");
            customerOfOrder = connection.prepareStatement("SELECT o_c_id FROM orders WHERE o_id = ? AND o_d_id = ? AND o_w_id = ?");
            setCarrier = connection.prepareStatement("UPDATE orders SET o_carrier_id = ? WHERE o_id = ? AND o_d_id = ? AND o_w_id = ?");
            setDelivered = connection.prepareStatement("UPDATE order_line SET ol_delivery_d = ? WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?");
            total = connection.prepareStatement("SELECT sum(ol_amount) AS ol_total FROM order_line WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?");
            credit = connection.prepareStatement("UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 "
                + "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?");

            next = connection.prepareStatement("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?");
            low = connection.prepareStatement("SELECT count(DISTINCT s_i_id) AS stock_count FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? "
                + "AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?");
        }

        @Override
        public int draw() {
            int left = draw.between(0, 99);
            for (kind = 0; left >= SHARES[kind]; kind++) {
                left -= SHARES[kind];
            }
            d = draw.between(1, TpccTables.DISTRICTS);
            customerWarehouse = home;
            customerDistrict = d;
            customer = draw.nonUniform(1_023, CUSTOMERS, 1, TpccTables.CUSTOMERS);
            lastName = draw.percent(60) ? Draw.lastName(draw.nonUniform(255, LAST_NAMES, 0, 999)) : null;
            switch (KINDS.get(kind)) {
                case "new_order" -> drawLines();
                case "payment" -> {
                    amount = BigDecimal.valueOf(draw.between(100, 500_000), 2);
                    if (draw.percent(15)) {
                        customerWarehouse = otherWarehouse();
                        customerDistrict = draw.between(1, TpccTables.DISTRICTS);
                    }
                }
                case "delivery" -> carrier = draw.between(1, 10);
                default -> threshold = draw.between(10, 20);
            }
            return kind;
        }

        private int otherWarehouse() {
            int other = draw.between(1, TpccTables.WAREHOUSES - 1);
            return other < home ? other : other + 1;
        }

        private void drawLines() {
            int count = draw.between(5, 15);
            items = new int[count];
            suppliers = new int[count];
            quantities = new int[count];
            for (int line = 0; line < count; line++) {
                do {
                    items[line] = draw.nonUniform(8_191, ITEMS, 1, TpccTables.ITEMS);
                } while (isDrawn(line));
                suppliers[line] = draw.percent(1) ? otherWarehouse() : home;
                quantities[line] = draw.between(1, 10);
            }
            if (draw.percent(1)) {
                items[count - 1] = NO_ITEM;
            }
        }

        private boolean isDrawn(int line) {
            for (int before = 0; before < line; before++) {
                if (items[before] == items[line]) {
                    return true;
                }
            }
            return false;
        }

        @Override
        public boolean attempt() throws SQLException {
            boolean done = switch (KINDS.get(kind)) {
                case "new_order" -> newOrder();
                case "payment" -> payment();
                case "order_status" -> orderStatus();
                case "delivery" -> delivery();
                default -> stockLevel();
            };
            if (done) {
                connection.commit();
            } else {
                connection.rollback();
            }
            return done;
        }

        /** Binds integers to the parameters from one on. */
        private static PreparedStatement with(PreparedStatement statement, int from, int... values) throws SQLException {
            for (int i = 0; i < values.length; i++) {
                statement.setInt(from + i, values[i]);
            }
            return statement;
        }

        /** The one row. */
        private static ResultSet row(PreparedStatement statement, int... values) throws SQLException {
            var rows = with(statement, 1, values).executeQuery();
            if (!rows.next()) {
                throw new SQLException("a row is missing: " + statement);
            }
            return rows;
        }

        /** Changes one row. */
        private static void change(PreparedStatement statement) throws SQLException {
            int changed = statement.executeUpdate();
            if (changed != 1) {
                throw new SQLException(changed + " rows are changed: " + statement);
            }
        }

        private static Timestamp now() {
            return new Timestamp(System.currentTimeMillis());
        }

        private boolean newOrder() throws SQLException {
            // What an attempt that was lost has left.
            insertLine.clearBatch();
            updateStock.clearBatch();
            BigDecimal discount;
            try (var rows = row(orderCustomer, home, d, customer)) {
                discount = rows.getBigDecimal("c_discount");
                rows.getString("c_last");
                rows.getString("c_credit");
            }
            BigDecimal tax;
            try (var rows = row(warehouseTax, home)) {
                tax = rows.getBigDecimal("w_tax");
            }
            int o;
            try (var rows = row(lockDistrict, home, d)) {
                o = rows.getInt("d_next_o_id");
                tax = tax.add(rows.getBigDecimal("d_tax"));
            }
            change(with(nextOrder, 1, home, d));
            boolean local = true;
            for (int supplier : suppliers) {
                local &= supplier == home;
            }
            with(insertOrder, 1, o, d, home, customer).setTimestamp(5, now());
            change(with(insertOrder, 6, items.length, local ? 1 : 0));
            change(with(insertNewOrder, 1, o, d, home));

            var sum = BigDecimal.ZERO;
            for (int line = 0; line < items.length; line++) {
                BigDecimal price;
                String data;
                try (var rows = with(item, 1, items[line]).executeQuery()) {
                    if (!rows.next()) {
                        return false;
                    }
                    price = rows.getBigDecimal("i_price");
                    rows.getString("i_name");
                    data = rows.getString("i_data");
                }
                int quantity;
                String info;
                try (var rows = row(lockStock, items[line], suppliers[line])) {
                    quantity = rows.getInt("s_quantity");
                    // Whether the line's brand is generic, which the terminal would show.
                    data += rows.getString("s_data");
                    info = rows.getString(2 + d);
                }
                int left = quantity - quantities[line];
                var costs = price.multiply(BigDecimal.valueOf(quantities[line]));
                sum = sum.add(costs);
                with(updateStock, 1, left >= 10 ? left : left + 91, quantities[line], suppliers[line] == home ? 0 : 1, items[line], suppliers[line]);
                updateStock.addBatch();
                with(insertLine, 1, o, d, home, line + 1, items[line], suppliers[line], quantities[line]);
                insertLine.setBigDecimal(8, costs);
                insertLine.setString(9, info);
                insertLine.addBatch();
            }
            insertLine.executeBatch();
            for (int changed : updateStock.executeBatch()) {
                if (changed != 1) {
                    throw new SQLException(changed + " rows of stock are changed");
                }
            }
            sum.multiply(BigDecimal.ONE.add(tax)).multiply(BigDecimal.ONE.subtract(discount));
            return true;
        }

        private static Customer customer(ResultSet rows) throws SQLException {
            return new Customer(rows.getInt("c_id"), rows.getString("c_first"), rows.getString("c_last"), rows.getString("c_credit"),
                rows.getBigDecimal("c_balance"), rows.getBigDecimal("c_ytd_payment"), rows.getInt("c_payment_cnt"));
        }

        /** Of several with one name that in the middle, clause 2.5.2.2. */
        private Customer findCustomer() throws SQLException {
            if (lastName == null) {
                try (var rows = row(customerById, customerWarehouse, customerDistrict, customer)) {
                    return customer(rows);
                }
            }
            with(customersByName, 1, customerWarehouse, customerDistrict).setString(3, lastName);
            var found = new ArrayList<Customer>();
            try (var rows = customersByName.executeQuery()) {
                while (rows.next()) {
                    found.add(customer(rows));
                }
            }
            if (found.isEmpty()) {
                throw new SQLException("no customer has the name " + lastName);
            }
            return found.get((found.size() - 1) / 2);
        }

        private boolean payment() throws SQLException {
            payWarehouse.setBigDecimal(1, amount);
            change(with(payWarehouse, 2, home));
            String name;
            try (var rows = row(warehouse, home)) {
                name = rows.getString("w_name");
            }
            payDistrict.setBigDecimal(1, amount);
            change(with(payDistrict, 2, home, d));
            try (var rows = row(district, home, d)) {
                name += "    " + rows.getString("d_name");
            }
            var found = findCustomer();
            var pay = payCustomer;
            if (found.credit().equals("BC")) {
                pay = payBadCustomer;
                try (var rows = row(customerData, customerWarehouse, customerDistrict, found.id())) {
                    var data = found.id() + " " + customerDistrict + " " + customerWarehouse + " " + d + " " + home + " " + amount + " | " + rows.getString("c_data");
                    pay.setString(4, data.substring(0, Math.min(data.length(), 500)));
                }
            }
            pay.setBigDecimal(1, found.balance().subtract(amount));
            pay.setBigDecimal(2, found.paid().add(amount));
            pay.setInt(3, found.payments() + 1);
            change(with(pay, pay == payCustomer ? 4 : 5, customerWarehouse, customerDistrict, found.id()));
            with(insertHistory, 1, customerDistrict, customerWarehouse, found.id(), d, home).setTimestamp(6, now());
            insertHistory.setBigDecimal(7, amount);
            insertHistory.setString(8, name);
            change(insertHistory);
            return true;
        }

        private boolean orderStatus() throws SQLException {
            var found = findCustomer();
            int o;
            try (var rows = row(lastOrder, home, d, found.id())) {
                o = rows.getInt("o_id");
                rows.getInt("o_carrier_id");
                rows.getTimestamp("o_entry_d");
            }
            int count = 0;
            try (var rows = with(lines, 1, o, d, home).executeQuery()) {
                for (; rows.next(); count++) {
                    rows.getInt("ol_i_id");
                    rows.getInt("ol_supply_w_id");
                    rows.getInt("ol_quantity");
                    rows.getBigDecimal("ol_amount");
                    rows.getTimestamp("ol_delivery_d");
                }
            }
            if (count < 5 || count > 15) {
                throw new SQLException("order " + o + " has " + count + " lines");
            }
            return true;
        }

        private boolean delivery() throws SQLException {
            for (int each = 1; each <= TpccTables.DISTRICTS; each++) {
                int o;
                try (var rows = with(oldest, 1, each, home).executeQuery()) {
                    if (!rows.next()) {
                        // Clause 2.7.4.2: a district without an open order is skipped.
                        continue;
                    }
                    o = rows.getInt("no_o_id");
                }
                change(with(deleteNewOrder, 1, o, each, home));
                int of;
                try (var rows = row(customerOfOrder, o, each, home)) {
                    of = rows.getInt("o_c_id");
                }
                change(with(setCarrier, 1, carrier, o, each, home));
                setDelivered.setTimestamp(1, now());
                int count = with(setDelivered, 2, o, each, home).executeUpdate();
                if (count < 5 || count > 15) {
                    throw new SQLException("order " + o + " has " + count + " lines");
                }
                BigDecimal costs;
                try (var rows = row(total, o, each, home)) {
                    costs = rows.getBigDecimal("ol_total");
                }
                credit.setBigDecimal(1, costs);
                change(with(credit, 2, home, each, of));
            }
            return true;
        }

        private boolean stockLevel() throws SQLException {
            int newest;
            try (var rows = row(next, home, d)) {
                newest = rows.getInt("d_next_o_id");
            }
            try (var rows = row(low, home, d, newest, newest - 20, home, threshold)) {
                rows.getInt("stock_count");
            }
            return true;
        }
    }
}
