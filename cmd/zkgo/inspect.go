package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/offline/inspect"
)

// inspectFlags contains the flags of zkgo inspect and its subcommands.
type inspectFlags struct {
	resultFlags
	logs string
}

// resultFlags contains the flags of a command that prints one result.
type resultFlags struct {
	output string
}

// opensByName is the reason why the commands don't read the standard input.
const opensByName = "it finds files by name and reads some of them twice: save the input to a file first"

// texter is a result with a human-readable form.
type texter interface{ Text(w io.Writer) error }

// print writes a result in the selected format.
func (f *resultFlags) print(w io.Writer, v texter) error {
	if f.output == "json" {
		return inspect.JSON(w, v)
	}
	return v.Text(w)
}

func inspectCommand() *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Inspect snapshots, logs and backups on disk",
		Long: `Inspect files on disk: the files of zkgo and Apache ZooKeeper (3.4 to 3.9, also
compressed), and backups.

The commands neither write nor lock files, so they are safe to use on the files of a
running server.`,
		Example: `  zkgo inspect list /var/lib/zookeeper
  zkgo inspect snapshot /var/lib/zookeeper --depth 2
  zkgo inspect diff backup-monday.zkb backup-tuesday.zkb
  zkgo inspect log /var/lib/zookeeper --path /brokers --from 0x100000000
  zkgo inspect verify /var/lib/zookeeper`,
	}
	flags := cmd.PersistentFlags()
	outputVar(flags, &f.output)
	flags.StringVar(&f.logs, "data-log-dir", "", "`directory` for the transaction log, if different (zoo.cfg: dataLogDir)")
	cmd.AddCommand(inspectList(&f), inspectSnapshot(&f), inspectDiff(&f), inspectLog(&f), inspectVerify(&f))
	return cmd
}

// fileList is a list of files to print.
type fileList struct {
	Files []inspect.File `json:"files"`
}

// Text implements texter.
func (l fileList) Text(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "FORMAT\tKIND\tFIRST\tLAST\tBYTES\tCHANGED\tPATH")
	for i := range l.Files {
		f := &l.Files[i]
		first, last := f.Range()
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", f.Format, f.Kind, first, last, f.Bytes, f.Time.Format("2006-01-02 15:04:05"), f.Path)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for i := range l.Files {
		f := &l.Files[i]
		if f.Warning != "" {
			fmt.Fprintf(w, "WARNING: %s: %s\n", f.Path, f.Warning)
		}
		if f.Problem != "" {
			fmt.Fprintf(w, "DAMAGED: %s\n", f.Problem)
		}
	}
	return nil
}

// damaged returns an error if a file in the list is damaged.
func (l fileList) damaged() error {
	n := 0
	for i := range l.Files {
		if l.Files[i].Problem != "" {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d files are damaged", n, len(l.Files))
	}
	return nil
}

func inspectList(f *inspectFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list DATADIR",
		Short: "List the files of a server's state",
		Long: `List the files of a server's state. FIRST and LAST are log indexes for zkgo's files and
zxids for ZooKeeper's. The command checks zkgo's logs, but only the headers of
snapshots; use zkgo inspect verify to check everything.`,
		Example: `  zkgo inspect list /var/lib/zookeeper --data-log-dir /var/log/zookeeper`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := named(cmd, opensByName, args...); err != nil {
				return err
			}
			files, err := inspect.List(inspect.Dirs{Data: args[0], Logs: f.logs}, false)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), fileList{files})
		},
	}
}

func inspectVerify(f *inspectFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "verify PATH",
		Short: "Verify a data directory, a snapshot or a backup",
		Long: `Verify a data directory, or one snapshot or backup. For a data directory, the command
verifies the checksums of the logs, the snapshots, Raft's term and vote, identity.json
and ensemble.json. It also verifies that no file is missing and that the files belong
together, and loads the newest snapshot.

It reports damaged files as DAMAGED and fails. A log that ends in an incomplete record,
or directly after one, is only a WARNING: either a crash or a truncation can be the
cause.`,
		Example: `  zkgo inspect verify /var/lib/zookeeper
  zkgo inspect verify /backups/zk-0x1000004d2.zkb`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := named(cmd, opensByName, args...); err != nil {
				return err
			}
			files, err := inspect.Verify(inspect.Dirs{Data: args[0], Logs: f.logs})
			if err != nil {
				return err
			}
			l := fileList{files}
			if err := f.print(cmd.OutOrStdout(), l); err != nil {
				return err
			}
			return l.damaged()
		},
	}
}

func inspectSnapshot(f *inspectFlags) *cobra.Command {
	var levels int
	cmd := &cobra.Command{
		Use:   "snapshot PATH",
		Short: "Summarise a snapshot by subtree",
		Long: `Summarise a snapshot by subtree: number of znodes, bytes of data, the largest znode,
ephemerals and the newest change. It also lists the sessions that own ephemerals.

PATH is a snapshot of zkgo (a directory), a snapshot of ZooKeeper, a backup, or a data
directory. For a data directory, the command loads the newest snapshot and applies the
log.`,
		Example: `  zkgo inspect snapshot /var/lib/zookeeper --depth 2
  zkgo inspect snapshot version-2/snapshot.1a2b -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := named(cmd, opensByName, args...); err != nil {
				return err
			}
			img, err := inspect.Open(inspect.Dirs{Data: args[0], Logs: f.logs})
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), inspect.Summarise(img, levels))
		},
	}
	cmd.Flags().IntVar(&levels, "depth", 1, "number of `levels` below the root to list")
	return cmd
}

func inspectDiff(f *inspectFlags) *cobra.Command {
	var root string
	var stats bool
	cmd := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "Compare two snapshots",
		Long: `Compare two snapshots, and list sessions and znodes that were added (+), removed (-) or
changed (!). Paths are as in zkgo inspect snapshot; the formats may differ. The
command fails if a znode differs.`,
		Example: `  zkgo inspect diff monday.zkb tuesday.zkb --path /config
  zkgo inspect diff /var/lib/zookeeper/version-2/snapshot.1a2b /var/lib/zkgo --stats`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := named(cmd, opensByName, args...); err != nil {
				return err
			}
			before, err := inspect.Open(inspect.Dirs{Data: args[0]})
			if err != nil {
				return err
			}
			after, err := inspect.Open(inspect.Dirs{Data: args[1]})
			if err != nil {
				return err
			}
			c, err := inspect.Compare(before, after, root, stats)
			if err != nil {
				return err
			}
			if err := f.print(cmd.OutOrStdout(), c); err != nil {
				return err
			}
			if n := len(c.Differences); n > 0 {
				return fmt.Errorf("%d znodes differ", n)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&root, "path", "/", "compare only this `znode` and its descendants")
	cmd.Flags().BoolVar(&stats, "stats", false, "also compare versions, zxids and times")
	return cmd
}

func inspectLog(f *inspectFlags) *cobra.Command {
	var filter inspect.Filter
	var from, to, session string
	cmd := &cobra.Command{
		Use:   "log PATH",
		Short: "Print the transactions of a log",
		Long: `Print the transactions of a log with time, zxid, session, operation and path. PATH is a
data directory, or a log file of ZooKeeper. -o json prints one object per line.

The entries of zkgo's log contain no zxids, because the server assigns them when it
applies an entry. The command therefore applies the log to the oldest usable snapshot.
Earlier entries have no zxid and no result.`,
		Example: `  zkgo inspect log /var/lib/zookeeper --path /brokers/ids
  zkgo inspect log /var/lib/zookeeper --session 0x100000000000007 -o json
  zkgo inspect log version-2/log.100000001 --from 0x100000010 --to 0x100000020`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, v := range []struct {
				name, text string
				to         *inspect.Hex
			}{{"from", from, &filter.From}, {"to", to, &filter.To}, {"session", session, &filter.Session}} {
				if v.text == "" {
					continue
				}
				if err := v.to.UnmarshalText([]byte(v.text)); err != nil {
					return fmt.Errorf("--%s: %w", v.name, err)
				}
			}
			if err := named(cmd, opensByName, args...); err != nil {
				return err
			}
			return printLog(f, args[0], filter, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "first `zxid`")
	flags.StringVar(&to, "to", "", "last `zxid`")
	flags.StringVar(&session, "session", "", "only transactions of the session with this `id`")
	flags.StringVar(&filter.Below, "path", "", "only transactions on this `znode` or its descendants")
	flags.BoolVar(&filter.All, "all", false, "also print entries that are not transactions: elections, attaches, syncs")
	return cmd
}

func printLog(f *inspectFlags, path string, filter inspect.Filter, w io.Writer) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	return inspect.Log(inspect.Dirs{Data: path, Logs: f.logs}, filter, func(t *inspect.Transaction) error {
		if f.output == "json" {
			return lines.Encode(t)
		}
		_, err := fmt.Fprintln(w, t.Text())
		return err
	})
}
