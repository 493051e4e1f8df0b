package main

import (
	"github.com/spf13/cobra"

	"github.com/zkgo/zkgo/internal/manual"
)

// manCommand writes the man pages for packages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man directory",
		Short:   "Write the man pages into the directories man1 and man5 of a directory",
		Example: "  zkgo man /usr/local/share/man",
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := named(cmd, "there are several pages", args[0]); err != nil {
				return err
			}
			return manual.Write(cmd.Root(), args[0])
		},
	}
}
