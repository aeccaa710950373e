import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;

/** What is measured: how its tables are made, what its clients do, what must hold afterwards. */
interface Workload {
    /** The kinds of its transactions. */
    List<String> kinds();

    /** Makes the tables anew and fills them. */
    void load(Connection connection) throws SQLException;

    /** A client on a connection of its own; the first has number 0. */
    Client client(Connection connection, int number, Draw draw) throws SQLException;

    /** What does not hold, a line each. */
    List<String> check(Connection connection) throws SQLException;

    /** One that runs transactions, one after the other. */
    interface Client {
        /** Draws the next transaction; its kind's position. */
        int draw();

        /**
         * Runs what was drawn, to its commit; called again where that was lost to others. False where it has rolled itself back, or found nothing, as the
         * workload's description lets it.
         */
        boolean attempt() throws SQLException;
    }
}
