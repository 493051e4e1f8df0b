package cli

// toolCommands are the commands that zkCli.sh does not have.
func toolCommands() []Command {
	return nil
}
