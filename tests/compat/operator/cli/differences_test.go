package cli

// difference is the output of zkgo cli for a command for which zkCli.sh prints something else.
type difference struct{ out, err, why string }

// differences are the deliberate ones, by command.
var differences = map[string]difference{
	"nonsense":                            {err: "Command not found: nonsense. See: help", why: "the list of all commands hides the error"},
	"whoami extra":                        {err: "whoami: unexpected argument \"extra\"; a name or a value with spaces needs quotes\nwhoami", why: "an argument without a use is a mistake"},
	"version extra":                       {err: "version: unexpected argument \"extra\"; a name or a value with spaces needs quotes\nversion", why: "an argument without a use is a mistake"},
	"create /missing/child":               {err: "Node does not exist: /missing, the parent of /missing/child: create -p creates the parents as well", why: "it says which znode is missing, and what helps"},
	"create /typo/b x world:anyone:xyz":   {err: "Unknown perm type: x\nUnknown perm type: y\nUnknown perm type: z", why: "a mistyped ACL must not lock a znode"},
	"create /typo/d x world:anyone:r,foo": {err: "foo does not have the form scheme:id:perm", why: "a mistyped ACL must not lock a znode"},
	"ls /nowhere":                         {err: "Not connected", why: "standard output is for data, and a script has to see the failure"},
}
