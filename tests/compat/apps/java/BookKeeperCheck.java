import java.util.Enumeration;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/** Ledgers of BookKeeper: BookKeeperCheck URI write COUNT, read ID or fence; prints a RESULT line. */
public class BookKeeperCheck {
    static BookKeeper client(String uri) throws Exception {
        ClientConfiguration conf = new ClientConfiguration().setZkTimeout(8000).setAddEntryTimeout(60).setReadEntryTimeout(60);
        return new BookKeeper(conf.setMetadataServiceUri(uri));
    }

    static LedgerHandle write(BookKeeper bk, int count) throws Exception {
        LedgerHandle l = bk.createLedger(3, 2, 2, BookKeeper.DigestType.CRC32C, new byte[0]);
        for (int i = 0; i < count; i++) {
            l.addEntry(("entry " + i).getBytes());
        }
        return l;
    }

    /** Returns what a new client finds in a ledger. */
    static String read(String uri, long id) throws Exception {
        try (BookKeeper bk = client(uri); LedgerHandle l = bk.openLedger(id, BookKeeper.DigestType.CRC32C, new byte[0])) {
            int n = 0;
            for (Enumeration<LedgerEntry> e = l.readEntries(0, l.getLastAddConfirmed()); e.hasMoreElements(); n++) {
                String got = new String(e.nextElement().getEntry());
                if (!got.equals("entry " + n)) {
                    throw new IllegalStateException("entry " + n + " is " + got);
                }
            }
            return "ledger " + id + ": " + n + " entries on " + l.getLedgerMetadata().getAllEnsembles();
        }
    }

    public static void main(String[] a) throws Exception {
        String uri = a[0];
        String result = switch (a[1]) {
            case "write" -> {
                try (BookKeeper bk = client(uri)) {
                    LedgerHandle l = write(bk, Integer.parseInt(a[2]));
                    l.close();
                    yield read(uri, l.getId());
                }
            }
            case "read" -> read(uri, Long.parseLong(a[2]));
            case "fence" -> {
                try (BookKeeper bk = client(uri)) {
                    LedgerHandle l = write(bk, 10);
                    String found = read(uri, l.getId());
                    try {
                        l.addEntry("late".getBytes());
                        yield "not fenced: " + found;
                    } catch (BKException.BKLedgerFencedException | BKException.BKLedgerClosedException e) {
                        yield found.contains(": 10 entries") ? "fenced after 10 entries" : found;
                    }
                }
            }
            default -> throw new IllegalArgumentException(a[1]);
        };
        System.out.println("RESULT " + result);
        System.exit(0);
    }
}
