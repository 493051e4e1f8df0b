package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/offline/container"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/spelling"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// containerFlags contains the flags of zkgo container.
type containerFlags struct {
	idFromHostname, print bool
	extra                 []string
	pod                   podFlags
}

func containerCommand() *cobra.Command {
	var f containerFlags
	s := serverFlags{clientPort: unset}
	cmd := &cobra.Command{
		Use:   "container [zoo.cfg]",
		Short: "Run a server in a container, configured like ZooKeeper's official image",
		Long: `Write zoo.cfg and myid from the ZOO_* environment variables of ZooKeeper's official
container image, like its entrypoint, and run the server. Existing files are kept. With the argument
zoo.cfg, the server uses that file instead.

ZOO_MY_ID, ZOO_SERVERS, ZOO_TICK_TIME, ZOO_INIT_LIMIT, ZOO_SYNC_LIMIT, ZOO_MAX_CLIENT_CNXNS,
ZOO_STANDALONE_ENABLED, ZOO_ADMINSERVER_ENABLED, ZOO_AUTOPURGE_PURGEINTERVAL,
ZOO_AUTOPURGE_SNAPRETAINCOUNT, ZOO_4LW_COMMANDS_WHITELIST, ZOO_CFG_EXTRA (more lines of
zoo.cfg, separated by spaces), ZOO_CONF_DIR (/conf), ZOO_DATA_DIR (/data), ZOO_DATA_LOG_DIR
(/datalog), ZOO_DATADIR_AUTOCREATE_DISABLE. The users and passwords of Bitnami's image become
a JAAS file: ZOO_SERVER_USERS, ZOO_SERVER_PASSWORDS, and those with ZOO_QUORUM_SERVER_ and
ZOO_QUORUM_LEARNER_. With the suffix _FILE, a variable
names a file that contains the value.

The server reads ZooKeeper's system properties from SERVER_JVMFLAGS and JVMFLAGS, like
all commands that read a zoo.cfg. A line of zoo.cfg overrides the property zookeeper.KEY,
and --set overrides both. Unknown properties and ZOO_* variables cause a warning. Flags
for heap and garbage collection have no effect.

With --statefulset, the server runs as a Kubernetes pod: it derives its id and the list
of servers from the StatefulSet, joins the ensemble, and leaves it when the StatefulSet
is scaled down. A restarted pod stays a member.

The files are written only if the server would start with them.`,
		Example: `  ZOO_MY_ID=2 ZOO_SERVERS='server.1=a:2888:3888;2181 server.2=b:2888:3888;2181' zkgo container
  zkgo container --print           # show the files`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			environ := os.Environ()
			pod, err := f.pod.find(cmd.Context(), &s, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if pod != nil {
				environ = append(environ, pod.variables()...)
			}
			plan := container.FromEnvironment(environ)
			for _, file := range f.extra {
				more, err := smallfile.Read(file)
				if err != nil {
					return usagef("--extra: %w", err)
				}
				plan = plan.Adding(string(more))
			}
			if len(args) > 0 {
				if err := named(cmd, "the server writes membership changes to it", args[0]); err != nil {
					return err
				}
				plan = plan.With(args[0])
			}
			return runContainer(cmd, plan, &f, &s, pod)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.idFromHostname, "id-from-hostname", false, "if ZOO_MY_ID is not set, derive the id from the host name: zk-0 is server 1")
	flags.StringArrayVar(&f.extra, "extra", nil, "`file` with more lines for zoo.cfg, which override earlier ones; may be repeated")
	f.pod.register(flags)
	flags.BoolVar(&f.print, "print", false, "print the files without writing them, and exit")
	s.setting(flags)
	s.logging(flags)
	return cmd
}

func runContainer(cmd *cobra.Command, plan container.Plan, f *containerFlags, s *serverFlags, pod *pod) error {
	if f.idFromHostname && pod == nil && os.Getenv("ZOO_MY_ID") == "" {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		if plan.MyID, err = container.IDOfHostname(host); err != nil {
			return err
		}
	}
	if f.print {
		return errors.Join(printPlan(cmd.OutOrStdout(), plan), plan.Check())
	}
	log, err := newLogger(cmd.ErrOrStderr(), s.logFormat, s.logLevel)
	if err != nil {
		return err
	}
	logins, err := plan.Logins(os.Getenv)
	if err != nil {
		return err
	}
	if logins != "" {
		s.set = append(s.set, "java.security.auth.login.config="+logins)
	}
	if pod != nil {
		if err := pod.forget(plan); err != nil {
			return err
		}
	}
	if err := prepareContainer(plan, s, log); err != nil {
		return err
	}
	if pod != nil {
		return pod.run(cmd.Context(), s, cmd.ErrOrStderr(), log)
	}
	return runServer(cmd.Context(), s, cmd.ErrOrStderr(), nil)
}

// prepareContainer writes the files, and sets the flags of the server that will use them.
// We keep existing files. If we wrote a file with a mistake, it would stay after the user
// has corrected the variable, so we check the configuration before we write the first file.
func prepareContainer(plan container.Plan, s *serverFlags, log *slog.Logger) error {
	if err := plan.Check(); err != nil {
		return err
	}
	if len(plan.Unknown) > 0 {
		log.Warn("unknown variables: " + strings.Join(suggestions(plan.Unknown), ", "))
	}
	for _, name := range []string{"zookeeper-env.sh", "java.env"} {
		script := filepath.Join(filepath.Dir(plan.ConfigPath), name)
		if _, err := os.Stat(script); err == nil {
			log.Warn(script + " has no effect, because there is no shell: set its variables, e.g. SERVER_JVMFLAGS, for the container")
		}
	}
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

// suggestions adds to each unknown variable the most similar known one.
func suggestions(names []string) (words []string) {
	for _, name := range names {
		if near := spelling.Similar(name, container.Variables()); near != "" {
			name += " (did you mean " + near + "?)"
		}
		words = append(words, name)
	}
	return words
}

func printPlan(w io.Writer, p container.Plan) error {
	if p.Config != "" {
		fmt.Fprintf(w, "# %s\n%s\n", p.ConfigPath, p.Config)
	}
	_, err := fmt.Fprintf(w, "# %s\n%s\n", p.MyIDPath, p.MyID)
	return err
}
