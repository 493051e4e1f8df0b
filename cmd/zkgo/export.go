package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/offline/inspect"
	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
)

// exportFlags holds the flags of zkgo export.
type exportFlags struct {
	serverFlags
	resultFlags
	to, compression string
}

// withoutCompression is the value of --compression for zkfiles.None.
const withoutCompression = "none"

func exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export [zoo.cfg]",
		Short: "Write the data of a stopped server for Apache ZooKeeper",
		Long: `Write the state of a stopped server as a data directory of Apache ZooKeeper.

ZooKeeper 3.9 starts from it with the same znodes, stats, access control lists,
quotas, sessions and zxid. In an ensemble export on the server with the newest
zxid and give every ZooKeeper a copy, besides its myid. A client goes on with its
session if that was opened at a ZooKeeper before; other sessions have passwords
that ZooKeeper does not know, and end when their timeout is over.`,
		Example: `  zkgo export --to-zookeeper /var/lib/zookeeper --data-dir /var/lib/zkgo
  zkgo export --to-zookeeper /tmp/zk --compression gz zoo.cfg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.name(cmd, args); err != nil {
				return err
			}
			return runExport(&f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to-zookeeper", "", "empty data `directory` for ZooKeeper")
	f.reading(flags, "of zkgo's data (zoo.cfg: dataDir)")
	outputVar(flags, &f.output)
	choiceVar(flags, &f.compression, "compression", "", "`method` as snapshot.compression.method", withoutCompression, "gz", "snappy")
	return cmd
}

func runExport(f *exportFlags, stdout, stderr io.Writer) error {
	switch {
	case f.to == "":
		return usagef("where to? Name a directory with --to-zookeeper")
	case f.config == "" && f.dataDir == "":
		return usagef("what is to be exported? Name zkgo's data directory with --data-dir, or its zoo.cfg")
	}
	z, err := f.zooCfg()
	if err != nil {
		return err
	}
	cfg, err := translate(z)
	if err != nil {
		return err
	}
	if f.compression == withoutCompression {
		f.compression = string(zkfiles.None)
	}
	r, err := migrate.Export(cfg, f.to, zkfiles.Compression(f.compression))
	if err != nil {
		return err
	}
	if r.HasTTL {
		fmt.Fprintln(stderr, "warning: there are znodes with a time to live. Start ZooKeeper with extendedTypesEnabled=true, or it deletes them.")
	}
	return f.print(stdout, exportResult{r.Snapshot, inspect.Hex(r.Zxid), r.Znodes, r.Sessions})
}

// exportResult is the result to print.
type exportResult struct {
	Snapshot string      `json:"snapshot"`
	Zxid     inspect.Hex `json:"zxid"`
	Znodes   int         `json:"znodes"`
	Sessions int         `json:"sessions"`
}

// Text implements texter.
func (r exportResult) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %s and %s at zxid %v\n", r.Snapshot, count(r.Znodes, "znode"), count(r.Sessions, "session"), r.Zxid)
	return err
}
