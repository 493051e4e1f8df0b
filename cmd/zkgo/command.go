package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/version"
)

// newCommand returns the whole command tree.
func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "zkgo",
		Short: "A ZooKeeper-compatible coordination server",
		Long: `zkgo is a coordination server that speaks the ZooKeeper protocol: any client
of ZooKeeper 3.4 to 3.9 can use it.`,
		Example: `  zkgo server                      # a standalone server on port 2181, data in ./zkgo-data
  zkgo server /etc/zookeeper/zoo.cfg
  zkgo bench set -c 64             # how fast it is
  zkgo version`,
		Version:       version.Line(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version, its commit and date") // without cobra's -v
	root.AddCommand(
		cliCommand(),
		serverCommand(),
		configCommand(),
		containerCommand(),
		healthCommand(),
		importCommand(),
		exportCommand(),
		recoverCommand(),
		backupCommand(),
		restoreCommand(),
		inspectCommand(),
		testserverCommand(),
		benchCommand(),
		versionCommand(),
		manCommand(),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	helpCommand(root)
	strict(root)
	root.SetFlagErrorFunc(flagError)
	return root
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

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, its commit and date, and the ZooKeeper version it is compatible with",
		Example: "  zkgo version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Line())
			return err
		},
	}
}
