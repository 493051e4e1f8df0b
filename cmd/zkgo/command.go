package main

import (
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/version"
)

// newCommand returns the whole command tree.
func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "zkgo",
		Short: "A ZooKeeper-compatible coordination server",
		Long: `zkgo is a coordination server that speaks the ZooKeeper protocol. It works with
clients of ZooKeeper 3.4 to 3.9.`,
		Example: `  zkgo server                      # a standalone server on port 2181, data in ./zkgo-data
  zkgo server /etc/zookeeper/zoo.cfg
  zkgo ls -s zk1:2181 /            # a command of zkgo cli
  zkgo bench set -c 64             # measure a server
  zkgo version`,
		Version:       version.Line(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate(versionLine())
	root.Flags().Bool("version", false, "print the version, commit and build date") // without cobra's -v
	root.AddGroup(
		&cobra.Group{ID: "servers", Title: "Servers:"},
		&cobra.Group{ID: "clients", Title: "Clients:"},
		&cobra.Group{ID: verbGroup, Title: "Znodes, as in zkgo cli:"},
		&cobra.Group{ID: "files", Title: "Data files, backups and migration:"},
	)
	root.AddCommand(verbCommands()...)
	grouped(root, "servers", serverCommand(), configCommand(), containerCommand(), healthCommand(), testserverCommand())
	grouped(root, "clients", cliCommand(), contextCommand(), benchCommand())
	grouped(root, "files", backupCommand(), restoreCommand(), inspectCommand(), importCommand(), mirrorCommand(), exportCommand(), recoverCommand())
	root.AddCommand(versionCommand(), manCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	helpCommand(root)
	strict(root)
	completeFlags(root)
	return root
}

// grouped adds commands to a group of the help.
func grouped(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.GroupID = group
	}
	root.AddCommand(commands...)
}

// helpCommand makes cobra's help command fail for an unknown topic.
func helpCommand(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Name() != "help" {
			continue
		}
		cmd.Run = nil
		cmd.RunE = func(_ *cobra.Command, args []string) error {
			target, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return misused(root, unknownCommand(target, rest[0]))
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		}
	}
}

// versionLine returns the versions in a line.
func versionLine() string { return version.Line() + "\n" }

func versionCommand() *cobra.Command {
	var out resultFlags
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, commit, build date and compatible ZooKeeper version",
		Example: "  zkgo version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return out.print(cmd.OutOrStdout(), versions{
				version.Own(), version.Compatible, runtime.GOOS + "/" + runtime.GOARCH, runtime.Version(), version.Commit(), version.BuildTime().UTC(),
			})
		},
	}
	outputVar(cmd.Flags(), &out.output)
	return cmd
}

// versions is the result to print.
type versions struct {
	Version   string    `json:"version"`
	ZooKeeper string    `json:"zookeeper"`
	Platform  string    `json:"platform"`
	Go        string    `json:"go"`
	Commit    string    `json:"commit"`
	Time      time.Time `json:"time"`
}

// Text implements texter.
func (versions) Text(w io.Writer) error {
	_, err := io.WriteString(w, versionLine())
	return err
}
