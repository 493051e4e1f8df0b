package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/server"
)

// importFlags holds the flags of zkgo import.
type importFlags struct {
	serverFlags
	from, logs                       string
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
  zkgo import --from /data/zk --logs /log/zk --data-dir /var/lib/zkgo`,
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
	flags.StringVar(&f.logs, "logs", "", "`directory` of its transaction logs (its dataLogDir), if it is another one")
	f.reading(flags, "of zkgo's data (zoo.cfg: dataDir)")
	flags.BoolVar(&f.noLogs, "no-logs", false, "take the newest snapshot only: there are no transaction logs")
	flags.BoolVar(&f.acceptGaps, "accept-gaps", false, "go on where transactions are missing between the files")
	flags.BoolVar(&f.ignoreDigest, "ignore-digest", false, "take the data although they are not what ZooKeeper's digest says")
	cmd.MarkFlagsMutuallyExclusive("logs", "no-logs")
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
	from, logs := f.from, f.logs
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
	showImport(stdout, stderr, &cfg, r)
	return nil
}

// showImport prints what was imported and the next steps.
func showImport(stdout, stderr io.Writer, cfg *server.Config, r *migrate.Imported) {
	for _, w := range r.Warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	from := r.Snapshot
	if from == "" {
		from = "no snapshot"
	}
	fmt.Fprintf(stdout, "From %s and %s of %s, up to zxid 0x%x:\n  %s, %d of them ephemeral, and %s\n",
		from, count(r.Transactions, "transaction"), count(len(r.Logs), "log"), r.Report.Zxid, count(r.Znodes, "znode"), r.Ephemerals, count(r.Sessions, "session"))
	if r.Verified {
		fmt.Fprintf(stdout, "The digest is that of the source (%d compared).\n", r.Compared)
	} else {
		fmt.Fprintln(stdout, "The source has no digest to compare with.")
	}
	fmt.Fprintf(stdout, "Done: %s begins with zxid 0x%x.\n", cfg.DataDir, r.Zxid)
	if len(cfg.Quorum.Members) > 1 {
		fmt.Fprintln(stdout, "Start this server first, and alone; then the others, with empty directories.")
	}
}
