package main

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/offline/inspect"
	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
)

// importFlags holds the flags of zkgo import.
type importFlags struct {
	serverFlags
	resultFlags
	from, fromLogs                   string
	noLogs, acceptGaps, ignoreDigest bool
}

func importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [zoo.cfg]",
		Short: "Take over the data of an Apache ZooKeeper",
		Long: `Make the snapshots and transaction logs of a stopped ZooKeeper (3.4 to 3.9) the
beginning of a zkgo server.

Zxids, stats, access control lists, quotas, sessions and their ephemeral znodes
stay as they are: clients that reconnect go on with their sessions. What was put
together is compared with the digest that ZooKeeper 3.6 and later keep. Nothing
is changed in ZooKeeper's files. The target may be the same directory: zkgo's
files stand beside version-2.

With a zoo.cfg and without --from, its dataDir and dataLogDir are what is taken
over. In an ensemble import on one server, the one with the newest zxid, and start
it first and alone; then start the others with empty directories.`,
		Example: `  zkgo import /etc/zookeeper/zoo.cfg                 # in place, with the file that ZooKeeper had
  zkgo import --from /var/lib/zookeeper --data-dir /var/lib/zkgo
  zkgo import --from /data/zk --from-log-dir /log/zk --data-dir /var/lib/zkgo`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.name(cmd, args); err != nil {
				return err
			}
			return runImport(&f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "ZooKeeper's data `directory` (its dataDir)")
	flags.StringVar(&f.fromLogs, "from-log-dir", "", "`directory` of its transaction logs (its dataLogDir), if it is another one")
	f.reading(flags, "of zkgo's data (zoo.cfg: dataDir)")
	outputVar(flags, &f.output)
	flags.BoolVar(&f.noLogs, "no-logs", false, "take the newest snapshot only: there are no transaction logs")
	flags.BoolVar(&f.acceptGaps, "accept-gaps", false, "go on where transactions are missing between the files")
	flags.BoolVar(&f.ignoreDigest, "ignore-digest", false, "take the data although they are not what ZooKeeper's digest says")
	cmd.MarkFlagsMutuallyExclusive("from-log-dir", "no-logs")
	return cmd
}

func runImport(f *importFlags, stdout, stderr io.Writer) error {
	if f.config == "" && f.dataDir == "" {
		return usagef("where to? Name a directory with --data-dir, or a zoo.cfg")
	}
	z, err := f.zooCfg()
	if err != nil {
		return err
	}
	cfg, err := runnable(z)
	if err != nil {
		return err
	}
	from, logs := f.from, f.fromLogs
	if from == "" {
		if f.config == "" {
			return usagef("what is to be imported? Name ZooKeeper's data directory with --from, or its zoo.cfg")
		}
		if from = cfg.DataDir; logs == "" && cfg.Log.Dir != cfg.DataDir {
			logs = cfg.Log.Dir
		}
	}
	src := zkfiles.Source{NoLogs: f.noLogs, AcceptGaps: f.acceptGaps, IgnoreDigest: f.ignoreDigest}
	src.Data = zkfiles.Dir{FS: os.DirFS(from), Name: from}
	if logs != "" && logs != from {
		src.Logs = zkfiles.Dir{FS: os.DirFS(logs), Name: logs}
	}
	progress, done := byteProgress(stderr, "reading")
	src.Progress = progress
	r, err := migrate.Import(cfg, src)
	done()
	if err != nil {
		return stateError(err)
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	return f.print(stdout, importResult{
		Snapshot: r.Snapshot, Logs: r.Logs, Transactions: r.Transactions, SourceZxid: inspect.Hex(r.Report.Zxid), Znodes: r.Znodes, Ephemerals: r.Ephemerals,
		Sessions: r.Sessions, Verified: r.Verified, Compared: r.Compared, DataDir: cfg.DataDir, Zxid: inspect.Hex(r.Zxid), Members: len(cfg.Quorum.Members),
	})
}

// importResult is the result to print.
type importResult struct {
	Snapshot     string      `json:"snapshot"`
	Logs         []string    `json:"logs"`
	Transactions int         `json:"transactions"`
	SourceZxid   inspect.Hex `json:"sourceZxid"`
	Znodes       int         `json:"znodes"`
	Ephemerals   int         `json:"ephemerals"`
	Sessions     int         `json:"sessions"`
	Verified     bool        `json:"digestVerified"`
	Compared     int         `json:"digestsCompared"`
	DataDir      string      `json:"dataDir"`
	Zxid         inspect.Hex `json:"zxid"`
	Members      int         `json:"members"`
}

// Text prints what was imported and the next steps.
func (r importResult) Text(w io.Writer) error {
	fmt.Fprintf(w, "From %s and %s of %s, up to zxid %v:\n  %s, %d of them ephemeral, and %s\n", cmp.Or(r.Snapshot, "no snapshot"),
		count(r.Transactions, "transaction"), count(len(r.Logs), "log"), r.SourceZxid, count(r.Znodes, "znode"), r.Ephemerals, count(r.Sessions, "session"))
	if r.Verified {
		fmt.Fprintf(w, "The digest is that of the source (%d compared).\n", r.Compared)
	} else {
		fmt.Fprintln(w, "The source has no digest to compare with.")
	}
	_, err := fmt.Fprintf(w, "Done: %s begins with zxid %v.\n", r.DataDir, r.Zxid)
	if r.Members > 1 {
		_, err = fmt.Fprintln(w, "Start this server first, and alone; then the others, with empty directories.")
	}
	return err
}
