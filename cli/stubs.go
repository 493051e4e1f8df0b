package cli

func shellCommands() []Command    { return nil }
func readCommands() []Command     { return nil }
func writeCommands() []Command    { return nil }
func aclCommands() []Command      { return nil }
func quotaCommands() []Command    { return nil }
func watchCommands() []Command    { return nil }
func ensembleCommands() []Command { return nil }
