package manual

import (
	"slices"

	"github.com/spf13/cobra"
)

// Files of several pages.
var (
	packagedZooCfg = item{"/etc/zkgo/zoo.cfg", "The configuration of the service that the packages install."}
	myid           = item{"dataDir/myid", "The number N of this server in the lines server.N, for an ensemble."}
	dynamic        = item{"zoo.cfg.dynamic.*", "The list of servers, in the file that dynamicConfigFile names. The server rewrites it after a reconfig."}
)

// exitStatus returns the exit codes of a command.
func exitStatus(cmd *cobra.Command) []item {
	zero, one := "The command succeeded.", "The command failed. The error stream says why."
	const two = "The command line is wrong."
	switch cmd.CommandPath() {
	case "zkgo server", "zkgo container", "zkgo testserver":
		zero, one = "The server was stopped, by SIGINT or SIGTERM.", "The server could not start, or a failure ended it. The error stream says why."
	case "zkgo health":
		zero, one = "The server serves clients; with --live, it answers.", "It does not: no process listens, there is no quorum, or there was no answer in time."
	case "zkgo config check":
		zero, one = "zkgo server would accept the configuration.", "It would refuse it; with --strict, there are warnings."
	case "zkgo inspect verify":
		zero, one = "The files are good.", "A file is damaged or missing, or can't be read."
	case "zkgo inspect diff":
		zero, one = "No znode differs.", "A znode differs, or a file can't be read."
	case "zkgo cli":
		return []item{
			{"0", "The command succeeded. In a script, every line succeeded."},
			{"1", "The command failed. diff: the subtrees differ. A script exits with the code of the last line that failed."},
			{"2", two + " diff: the subtrees could not be compared."},
		}
	}
	return []item{{"0", zero}, {"1", one}, {"2", two}}
}

// environment returns the variables that a command reads. The page of zkgo has them all.
func environment(cmd *cobra.Command) []item {
	var all []item
	add := func(items ...item) {
		for _, i := range items {
			if !slices.Contains(all, i) {
				all = append(all, i)
			}
		}
	}
	path, root := cmd.CommandPath(), !cmd.HasParent()
	if readsZooCfg(cmd) || root {
		add(item{"SERVER_JVMFLAGS, JVMFLAGS", "ZooKeeper's system properties, -Dzookeeper.KEY=VALUE, are settings of zoo.cfg. Flags for the Java machine have no effect."},
			item{"ZOO_DATADIR_AUTOCREATE_DISABLE", "If it is not empty, the server does not create dataDir and dataLogDir."})
	}
	if path == "zkgo server" || path == "zkgo container" || root {
		add(item{"GOMEMLIMIT, GOGC, GOMAXPROCS", "Settings of Go's runtime. They replace the values that the server chooses."})
	}
	if path == "zkgo container" || root {
		add(containerVariables()...)
	}
	if path == "zkgo cli" || root {
		add(item{"NO_COLOR, TERM", "No colors if NO_COLOR is not empty, or TERM is dumb."},
			item{"VISUAL, EDITOR", "The editor of the shell's command edit, in this order; vi if both are empty."})
	}
	if hasContexts(cmd) || root {
		add(item{"ZKGO_CONTEXT, ZKGO_CONFIG", "The context to use, and the file with the contexts."},
			item{"ZKGO_FLAG", "The value of a flag that connects, e.g. ZKGO_SERVER of --server, ZKGO_TLS_CA of --tls-ca, ZKGO_AUTH of --auth. The flag overrides it."})
	}
	return all
}

// containerVariables returns the variables of ZooKeeper's official image.
func containerVariables() []item {
	return []item{
		{"ZOO_MY_ID", "The number in myid; 1 if it is not set."},
		{"ZOO_SERVERS", "The lines server.N, separated by spaces."},
		{"ZOO_CONF_DIR, ZOO_DATA_DIR, ZOO_DATA_LOG_DIR", "The directories of zoo.cfg, of the data and of the log: /conf, /data, /datalog."},
		{"ZOO_TICK_TIME, ZOO_INIT_LIMIT, ZOO_SYNC_LIMIT, ZOO_MAX_CLIENT_CNXNS, ZOO_STANDALONE_ENABLED", "tickTime, initLimit, syncLimit, maxClientCnxns, standaloneEnabled."},
		{"ZOO_ADMINSERVER_ENABLED", "admin.enableServer."},
		{"ZOO_AUTOPURGE_PURGEINTERVAL, ZOO_AUTOPURGE_SNAPRETAINCOUNT", "autopurge.purgeInterval, autopurge.snapRetainCount."},
		{"ZOO_4LW_COMMANDS_WHITELIST", "4lw.commands.whitelist."},
		{"ZOO_CFG_EXTRA", "More lines of zoo.cfg, separated by spaces."},
		{"ZOO_SERVER_USERS, ZOO_SERVER_PASSWORDS, ZOO_QUORUM_SERVER_USERS, ZOO_QUORUM_SERVER_PASSWORDS, ZOO_QUORUM_LEARNER_USER, ZOO_QUORUM_LEARNER_PASSWORD",
			"The logins of a JAAS file, as for Bitnami's image. With the suffix _FILE, each names a file."},
		{"ZOO_LOG_DIR, ZOO_LOG4J_PROP, ZOO_NOEXEC", "Known, and without effect."},
		{"ZOOCFGDIR, ZOOCFG", "The directory and the name of zoo.cfg, if the program is called by the name zkServer.sh."},
	}
}

// files returns the files that a command reads and writes.
func files(cmd *cobra.Command) []item {
	switch path := cmd.CommandPath(); {
	case path == "zkgo server" || path == "zkgo container" || !cmd.HasParent():
		all := []item{
			packagedZooCfg, myid, dynamic,
			{"dataDir/identity.json, dataDir/ensemble.json", "The server and the ensemble that the directory belongs to. Other users should not be able to read them."},
			{"dataDir, dataLogDir", "Snapshots and the log. zkgo inspect list explains each file."},
			{"/etc/default/zkgo", "The variables of the service that the packages install, e.g. ZKGO_SERVER_FLAGS."},
		}
		if path == "zkgo server" {
			all = append(all, item{"./zkgo-data", "The data of a server without a zoo.cfg."})
		}
		if !cmd.HasParent() {
			all = append(all, history, contexts)
		}
		return all
	case path == "zkgo cli":
		return []item{history, contexts}
	case hasContexts(cmd):
		return []item{contexts}
	case readsZooCfg(cmd):
		return []item{packagedZooCfg}
	}
	return nil
}

// hasContexts reports whether a command reads its connection settings from a context.
func hasContexts(cmd *cobra.Command) bool { return cmd.Flags().Lookup("context") != nil }

var contexts = item{"~/.config/zkgo/config.yaml", "Named sets of connection flags: zkgo context lists and changes them."}

var history = item{"~/.zkgo_history", "The lines that were typed into zkgo cli. --history names another file, or none."}
