import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * TPC-C and TATP through JDBC: `Main URL load|run|check tpcc|tatp [SECONDS THREADS SEED]`. The URL has the driver's settings, as `cargo xtask jdbc` gives them.
 *
 * <p>`run` prints what has ended (`transactions`: committed or failed), what of it was committed, what failed as the workload's description lets it, and how often one was
 * run again because others won; then the same by kind, with how long one took its client, its retries included. `check` fails where the tables are not what
 * transactions must leave. Not checked: that acknowledged commits survive a crash.
 */
public class Main {
    /** A conflict at repeatable read, and a circle of waits. */
    private static final Set<String> RETRIED = Set.of("40001", "40P01");

    private static final class Tally {
        final long[] committed;
        final long[] failed;
        final long[] retries;
        final long[] nanoseconds;

        Tally(int kinds) {
            committed = new long[kinds];
            failed = new long[kinds];
            retries = new long[kinds];
            nanoseconds = new long[kinds];
        }

        void add(Tally other) {
            for (int kind = 0; kind < committed.length; kind++) {
                committed[kind] += other.committed[kind];
                failed[kind] += other.failed[kind];
                retries[kind] += other.retries[kind];
                nanoseconds[kind] += other.nanoseconds[kind];
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 3 && arguments.length != 6) {
            usage();
        }
        var url = arguments[0];
        Workload workload = switch (arguments[2]) {
            case "tpcc" -> new Tpcc();
            case "tatp" -> new Tatp();
            default -> usage();
        };
        var verb = arguments[1];
        if (verb.equals("run") && arguments.length == 6) {
            run(url, workload, Double.parseDouble(arguments[3]), Integer.parseInt(arguments[4]), Long.parseLong(arguments[5]));
        } else if (verb.equals("load")) {
            try (var connection = DriverManager.getConnection(url)) {
                workload.load(connection);
            }
        } else if (verb.equals("check")) {
            try (var connection = DriverManager.getConnection(url)) {
                var wrong = workload.check(connection);
                wrong.forEach(System.err::println);
                System.exit(wrong.isEmpty() ? 0 : 1);
            }
        } else {
            usage();
        }
    }

    private static Workload usage() {
        System.err.println("Main URL load|check tpcc|tatp\nMain URL run tpcc|tatp SECONDS THREADS SEED");
        System.exit(2);
        return null;
    }

    private static void run(String url, Workload workload, double seconds, int threads, long seed) throws Exception {
        var connections = new ArrayList<Connection>();
        var tasks = new ArrayList<Callable<Tally>>();
        var stop = new AtomicBoolean();
        for (int number = 0; number < threads; number++) {
            var connection = DriverManager.getConnection(url);
            connections.add(connection);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            var client = workload.client(connection, number, new Draw(seed * threads + number));
            tasks.add(() -> {
                try {
                    return transactions(connection, client, workload.kinds().size(), (long) (seconds * 1e9), stop);
                } finally {
                    // One that fails ends the others.
                    stop.set(true);
                }
            });
        }
        var pool = Executors.newFixedThreadPool(threads);
        var all = new Tally(workload.kinds().size());
        var begun = System.nanoTime();
        try {
            for (Future<Tally> one : pool.invokeAll(tasks)) {
                all.add(one.get());
            }
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof Exception cause ? cause : failed;
        } finally {
            pool.shutdown();
            for (var connection : connections) {
                connection.close();
            }
        }
        print(workload.kinds(), all, (System.nanoTime() - begun) / 1e9);
    }

    private static Tally transactions(Connection connection, Workload.Client client, int kinds, long length, AtomicBoolean stop) throws SQLException {
        var tally = new Tally(kinds);
        long end = System.nanoTime() + length;
        long begun = System.nanoTime();
        while (begun < end && !stop.get()) {
            int kind = client.draw();
            for (boolean ended = false; !ended;) {
                try {
                    (client.attempt() ? tally.committed : tally.failed)[kind]++;
                    ended = true;
                } catch (SQLException error) {
                    if (!RETRIED.contains(error.getSQLState())) {
                        throw error;
                    }
                    if (!connection.getAutoCommit()) {
                        connection.rollback();
                    }
                    tally.retries[kind]++;
                }
            }
            long now = System.nanoTime();
            tally.nanoseconds[kind] += now - begun;
            begun = now;
        }
        return tally;
    }

    private static long sum(long[] counts) {
        long sum = 0;
        for (long count : counts) {
            sum += count;
        }
        return sum;
    }

    private static void print(List<String> kinds, Tally all, double seconds) {
        long committed = sum(all.committed);
        long failed = sum(all.failed);
        System.out.printf("seconds %.2f%n", seconds);
        System.out.println("transactions " + (committed + failed));
        System.out.println("committed " + committed);
        System.out.println("failed " + failed);
        System.out.println("retries " + sum(all.retries));
        for (int kind = 0; kind < kinds.size(); kind++) {
            long ended = Math.max(1, all.committed[kind] + all.failed[kind]);
            System.out.printf("  %s: %d committed, %d failed, %d retries, %.0f us each%n", kinds.get(kind), all.committed[kind],
                all.failed[kind], all.retries[kind], all.nanoseconds[kind] / 1e3 / ended);
        }
    }

    /** Runs statements that answer nothing. */
    static void execute(Connection connection, String... statements) throws SQLException {
        try (var statement = connection.createStatement()) {
            for (var sql : statements) {
                statement.execute(sql);
            }
        }
    }

    /** Each rule with a query that counts what breaks it: the rules that are broken. */
    static List<String> broken(Connection connection, String[][] rules) throws SQLException {
        var broken = new ArrayList<String>();
        try (var statement = connection.createStatement()) {
            for (var rule : rules) {
                try (ResultSet rows = statement.executeQuery(rule[1])) {
                    rows.next();
                    if (rows.getLong(1) != 0) {
                        broken.add(rule[0] + ": broken " + rows.getLong(1) + " times");
                    }
                }
            }
        }
        return broken;
    }
}
