package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/offline/container"
)

// containerFlags holds the flags of zkgo container.
type containerFlags struct {
	idFromHostname, print bool
}

func containerCommand() *cobra.Command {
	var f containerFlags
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
(/datalog).`,
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
	plan := container.FromEnvironment(os.LookupEnv)
	if id, _ := os.LookupEnv("ZOO_MY_ID"); f.idFromHostname && id == "" {
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
	notes, err := plan.Write()
	if err != nil {
		return err
	}
	for _, n := range notes {
		log.Info(n)
	}
	s.config = plan.ConfigPath
	return runServer(cmd.Context(), s, cmd.ErrOrStderr())
}

func printPlan(w io.Writer, p container.Plan) error {
	_, err := fmt.Fprintf(w, "# %s\n%s\n# %s\n%s\n", p.ConfigPath, p.Config, p.MyIDPath, p.MyID)
	return err
}
