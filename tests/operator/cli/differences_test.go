package cli

// difference is what zkgo cli prints where it does not print what zkCli.sh does.
type difference struct{ out, err, why string }

// differences are those on purpose, by command.
var differences = map[string]difference{
	"ls /nowhere": {err: "Not connected", why: "standard output is for data, and a script has to see the failure"},
}
