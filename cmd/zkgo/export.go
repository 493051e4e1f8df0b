package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/offline/inspect"
	"github.com/zkgo/zkgo/internal/offline/migrate"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
)

// exportFlags contains the flags of zkgo export.
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
		Short: "Export the data of a stopped server to Apache ZooKeeper",
		Long: `Write the state of a stopped server as a data directory of Apache ZooKeeper.

ZooKeeper 3.9 starts from it with the same znodes, stats, access control lists, quotas,
sessions and zxid. In an ensemble, export from the server with the newest zxid, and
copy the result to every ZooKeeper server, in addition to its myid. Clients keep
sessions that were created by ZooKeeper. Sessions that were created by zkgo have other
passwords; ZooKeeper expires them after their timeout.`,
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
	choiceVar(flags, &f.compression, "compression", "", "compression `method`, see snapshot.compression.method", withoutCompression, "gz", "snappy")
	return cmd
}

func runExport(f *exportFlags, stdout, stderr io.Writer) error {
	switch {
	case f.to == "":
		return usagef("no target: name a directory with --to-zookeeper")
	case f.config == "" && f.dataDir == "":
		return usagef("no source: name zkgo's data directory with --data-dir, or its zoo.cfg")
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
		fmt.Fprintln(stderr, "warning: some znodes have a time to live. Start ZooKeeper with extendedTypesEnabled=true, otherwise it deletes them.")
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
