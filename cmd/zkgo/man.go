package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/zkgo/zkgo/internal/version"
)

// manCommand writes the man pages for packages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man directory",
		Short:   "Write the man pages into a directory",
		Example: "  zkgo man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := named(cmd, "there are several pages", args[0]); err != nil {
				return err
			}
			at := version.BuildTime() // instead of today, so that a version always has the same pages
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{
				Section: "1", Source: "zkgo " + version.Own(), Manual: "zkgo", Date: &at,
			}, args[0])
		},
	}
}
