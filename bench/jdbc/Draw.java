import java.util.SplittableRandom;

/** Random values as TPC-C and TATP want them, for one thread. */
final class Draw {
    private static final String LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    private static final String[] SYLLABLES = {"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"};

    private final SplittableRandom random;

    Draw(long seed) {
        random = new SplittableRandom(seed);
    }

    /** Uniform, both ends included. */
    int between(int low, int high) {
        return random.nextInt(low, high + 1);
    }

    /** True so many times in a hundred. */
    boolean percent(int share) {
        return random.nextInt(100) < share;
    }

    /** NURand of TPC-C, clause 2.1.6. */
    int nonUniform(int a, int c, int low, int high) {
        return ((between(0, a) | between(low, high)) + c) % (high - low + 1) + low;
    }

    private String of(int characters, int length) {
        var text = new char[length];
        for (int i = 0; i < length; i++) {
            text[i] = LETTERS.charAt(random.nextInt(characters));
        }
        return new String(text);
    }

    /** Digits and letters. */
    String letters(int shortest, int longest) {
        return of(LETTERS.length(), between(shortest, longest));
    }

    String digits(int length) {
        return of(10, length);
    }

    String capitals(int length) {
        var text = new char[length];
        for (int i = 0; i < length; i++) {
            text[i] = (char) ('A' + random.nextInt(26));
        }
        return new String(text);
    }

    /** Data of items and stock: one in ten has ORIGINAL in it. */
    String brand() {
        var text = letters(26, 50);
        if (!percent(10)) {
            return text;
        }
        int at = between(0, text.length() - 8);
        return text.substring(0, at) + "ORIGINAL" + text.substring(at + 8);
    }

    /** The last name of a number below 1000. */
    static String lastName(int number) {
        return SYLLABLES[number / 100] + SYLLABLES[number / 10 % 10] + SYLLABLES[number % 10];
    }
}
