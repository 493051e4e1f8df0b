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

// importFlags contains the flags of zkgo import.
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
		Short: "Import the data of a stopped Apache ZooKeeper",
		Long: `Create the data directory of a zkgo server from the snapshots and transaction logs of a
stopped ZooKeeper (3.4 to 3.9).

Zxids, stats, access control lists, quotas, sessions and ephemeral znodes are
preserved; clients reconnect with their sessions. The result is compared with the
digests that ZooKeeper 3.6 and later write. ZooKeeper's files are not changed. The
target may be the same directory, because zkgo keeps its files next to version-2.

With a zoo.cfg and without --from, the command imports from its dataDir and dataLogDir.
In an ensemble, import on the server with the newest zxid, and start that server first.
Once it serves, start the others with empty directories.`,
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
	flags.StringVar(&f.fromLogs, "from-log-dir", "", "`directory` of its transaction logs, if different (its dataLogDir)")
	f.reading(flags, "of zkgo's data (zoo.cfg: dataDir)")
	outputVar(flags, &f.output)
	flags.BoolVar(&f.noLogs, "no-logs", false, "import only the newest snapshot, without transaction logs")
	flags.BoolVar(&f.acceptGaps, "accept-gaps", false, "continue if transactions are missing between files")
	flags.BoolVar(&f.ignoreDigest, "ignore-digest", false, "continue if the data does not match ZooKeeper's digest")
	cmd.MarkFlagsMutuallyExclusive("from-log-dir", "no-logs")
	return cmd
}

func runImport(f *importFlags, stdout, stderr io.Writer) error {
	if f.config == "" && f.dataDir == "" {
		return usagef("no target: name a directory with --data-dir, or a zoo.cfg")
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
			return usagef("no source: name ZooKeeper's data directory with --from, or its zoo.cfg")
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

// Text prints a summary of the import and the next steps.
func (r importResult) Text(w io.Writer) error {
	fmt.Fprintf(w, "From %s and %s of %s, up to zxid %v:\n  %s, %d of them ephemeral, and %s\n", cmp.Or(r.Snapshot, "no snapshot"),
		count(r.Transactions, "transaction"), count(len(r.Logs), "log"), r.SourceZxid, count(r.Znodes, "znode"), r.Ephemerals, count(r.Sessions, "session"))
	if r.Verified {
		fmt.Fprintf(w, "The digest matches the source (%d compared).\n", r.Compared)
	} else {
		fmt.Fprintln(w, "The source has no digest to compare with.")
	}
	_, err := fmt.Fprintf(w, "Imported to %s: first zxid %v.\n", r.DataDir, r.Zxid)
	if r.Members > 1 {
		_, err = fmt.Fprintln(w, "Start this server first. Once it serves, start the others with empty directories.")
	}
	return err
}
