package cli

// toolCommands are the commands that zkCli.sh does not have. Most of their work is
// package cli/subtree's.
func toolCommands() []Command {
	return []Command{
		treeCommand(), findCommand(), duCommand(), copyCommand(), moveCommand(), removeCommand(),
		watchTreeCommand(), exportCommand(), importCommand(), diffCommand(), editCommand(),
	}
}
