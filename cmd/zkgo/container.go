package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/offline/container"
	"github.com/zkgo/zkgo/server/zoocfg"
)

// containerFlags holds the flags of zkgo container.
type containerFlags struct {
	idFromHostname, print bool
	lookup                container.Lookup
}

func containerCommand() *cobra.Command {
	f := containerFlags{lookup: os.LookupEnv}
	var s serverFlags
	cmd := &cobra.Command{
		Use:   "container",
		Short: "Run a server as the official container image of ZooKeeper does",
		Long: `Write zoo.cfg and myid from the ZOO_* environment variables of ZooKeeper's official
container image, as its entrypoint does, and run the server. Files that are there already
are left alone.

ZOO_MY_ID, ZOO_SERVERS, ZOO_TICK_TIME, ZOO_INIT_LIMIT, ZOO_SYNC_LIMIT, ZOO_MAX_CLIENT_CNXNS,
ZOO_STANDALONE_ENABLED, ZOO_ADMINSERVER_ENABLED, ZOO_AUTOPURGE_PURGEINTERVAL,
ZOO_AUTOPURGE_SNAPRETAINCOUNT, ZOO_4LW_COMMANDS_WHITELIST, ZOO_CFG_EXTRA (more lines of
zoo.cfg, parted by spaces), ZOO_CONF_DIR (/conf), ZOO_DATA_DIR (/data), ZOO_DATA_LOG_DIR
(/datalog), ZOO_DATADIR_AUTOCREATE_DISABLE.

ZooKeeper's system properties in SERVER_JVMFLAGS and JVMFLAGS are settings, as with --set.
A line of zoo.cfg overrides a property zookeeper.KEY, and --set overrides both. Properties
that are not ZooKeeper's are named in a warning; flags for heap and garbage collection have
no effect.

The files are written only if the server would start with them.`,
		Example: `  ZOO_MY_ID=2 ZOO_SERVERS='server.1=a:2888:3888;2181 server.2=b:2888:3888;2181' zkgo container
  zkgo container --print           # what would be written`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runContainer(cmd, &f, &s)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.idFromHostname, "id-from-hostname", false, "without ZOO_MY_ID, take the number at the end of the host name, plus one: zk-0 is server 1")
	flags.BoolVar(&f.print, "print", false, "print what would be written, and neither write nor run")
	s.common(flags)
	return cmd
}

func runContainer(cmd *cobra.Command, f *containerFlags, s *serverFlags) error {
	plan := container.FromEnvironment(f.lookup)
	if id, _ := f.lookup("ZOO_MY_ID"); f.idFromHostname && id == "" {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		if plan.MyID, err = container.IDOfHostname(host); err != nil {
			return err
		}
	}
	if f.print {
		return printPlan(cmd.OutOrStdout(), plan)
	}
	log, err := newLogger(cmd.ErrOrStderr(), s.logFormat, s.logLevel)
	if err != nil {
		return err
	}
	if err := prepareContainer(plan, s, log); err != nil {
		return err
	}
	return runServer(cmd.Context(), s, cmd.ErrOrStderr())
}

// prepareContainer writes the files, and sets the flags of the server that will use them.
// Existing files are kept. Files with a mistake would remain after the variable has been
// corrected, so it checks the configuration before it writes the first file.
func prepareContainer(plan container.Plan, s *serverFlags, log *slog.Logger) error {
	settings, warnings, err := plan.Settings()
	if err != nil {
		return err
	}
	for _, w := range warnings {
		log.Warn(w)
	}
	var sets []string
	for _, kv := range settings {
		sets = append(sets, kv[0]+"="+kv[1])
	}
	s.set = append(sets, s.set...) // the last one wins
	s.config, s.options = plan.ConfigPath, []zoocfg.Option{zoocfg.WithReadFile(plan.Read)}
	z, err := s.zooCfg()
	if err != nil {
		return err
	}
	if _, err := runnable(z); err != nil {
		return err
	}
	notes, err := plan.Write()
	if err != nil {
		return err
	}
	for _, n := range notes {
		log.Info(n)
	}
	return nil
}

func printPlan(w io.Writer, p container.Plan) error {
	_, err := fmt.Fprintf(w, "# %s\n%s\n# %s\n%s\n", p.ConfigPath, p.Config, p.MyIDPath, p.MyID)
	return err
}
