package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
)

// aclCommands returns the commands for ACLs and authentication.
func aclCommands() []Command {
	return []Command{
		{
			Name: "getAcl", Usage: "[-s] path", Verb: "getAcl path...", Short: "print the ACL of znodes", Least: 1, Most: Any, Run: getACL,
			Options: []Option{{Name: "s", Long: "stat", Help: "Print znode stats additionally"}},
		},
		{
			Name: "setAcl", Usage: "[-s] [-v version] [-R] path acl", Verb: "setAcl path acl", Short: "replace the ACL of a znode", Least: 2, Most: 2, Run: setACL,
			Options: []Option{
				{Name: "s", Long: "stat", Help: "Print znode stats additionally"}, {Name: "v", Long: "version", Arg: "version", Help: "version"}, {Name: "R", Long: "recursive", Help: "recursive"},
			},
		},
		{Name: "addauth", Usage: "scheme auth", Short: "add credentials to the session", Least: 1, Most: 2, Run: addAuth, More: authHelp},
		{Name: "whoami", Usage: "", Verb: "whoami", Short: "list the identities of this session", Run: whoAmI},
	}
}

// authHelp describes where credentials can come from.
const authHelp = `AUTH may be - for the standard input, or @FILE for the content of a file, which keeps it
out of the history and the process list. For a text that begins with @, write @@.`

// emptyACL is zkCli.sh's message for a list without a valid entry.
const emptyACL = "Acl is not valid : null"

// parseACL parses scheme:id:perms,…. Its error names everything that is wrong, in
// zkCli.sh's words. zkCli.sh applies the valid rest of an invalid ACL. We don't, because a
// mistyped permission could lock the znode permanently. We accept a comma at the end, as
// zkCli.sh does. If no entry is valid, none ends the message: zkCli.sh then asks the
// server, which refuses an empty list.
func parseACL(text, none string) ([]client.ACL, error) {
	var acl []client.ACL
	var wrong []string
	for entry := range strings.SplitSeq(strings.TrimRight(text, ","), ",") {
		first, last := strings.Index(entry, ":"), strings.LastIndex(entry, ":")
		if first == last {
			wrong = append(wrong, entry+" does not have the form scheme:id:perm")
			continue
		}
		var perms client.Perms
		for _, letter := range entry[last+1:] {
			p := subtree.PermOf(letter)
			if p == 0 {
				wrong = append(wrong, fmt.Sprintf("Unknown perm type: %c", letter))
			}
			perms |= p
		}
		acl = append(acl, client.ACL{Perms: perms, ID: client.ID{Scheme: entry[:first], ID: entry[first+1 : last]}})
	}
	if len(acl) == 0 {
		wrong = append(wrong, none)
	}
	if len(wrong) > 0 {
		return nil, misuse("%s", strings.Join(wrong, "\n"))
	}
	return acl, nil
}

// ACL is the JSON form of an ACL entry.
type ACL struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
	Perms  string `json:"perms"`
}

// NewACL returns the JSON form of an ACL.
func NewACL(acl []client.ACL) []ACL {
	list := make([]ACL, len(acl))
	for i, a := range acl {
		list[i] = ACL{a.ID.Scheme, a.ID.ID, subtree.PermText(a.Perms)}
	}
	return list
}

func getACL(ctx context.Context, c *Call) error { return c.eachPath(ctx, c.acl) }

// acl prints the ACL of one znode.
func (c *Call) acl(ctx context.Context, path string) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	acl, stat, err := zk.GetACL(ctx, path)
	if err != nil {
		return err
	}
	answer := struct {
		Path string `json:"path"`
		ACL  []ACL  `json:"acl"`
		Stat *Stat  `json:"stat,omitempty"`
	}{Path: path, ACL: NewACL(acl)}
	if c.Has("s") {
		answer.Stat = NewStat(stat)
	}
	return c.Emit(answer, func(w io.Writer) {
		for _, a := range acl {
			fmt.Fprintf(w, "'%s,'%s\n: %s\n", a.ID.Scheme, a.ID.ID, subtree.PermText(a.Perms))
		}
		if c.Has("s") {
			printStat(w, c.Term, stat)
		}
	})
}

func setACL(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	acl, err := parseACL(c.Args[1], emptyACL)
	if err != nil {
		return err
	}
	v, err := version(c.Value("v"))
	if err != nil {
		return err
	}
	if err := checkPath(c.Args[0]); err != nil {
		return err
	}
	if !c.Has("R") {
		stat, err := zk.SetACL(ctx, c.Args[0], acl, v)
		if err != nil {
			return err
		}
		return c.emitStat(c.Args[0], stat)
	}
	var failed error
	err = c.shell.walk(ctx, c.Args[0], false, func(path string) error {
		if _, err := zk.SetACL(ctx, path, acl, v); err != nil {
			fmt.Fprintln(c.Err, sentence(err))
			failed = err
		}
		return context.Cause(ctx)
	})
	if err == nil && failed != nil {
		return &Exit{Code: 1, Err: failed} // already reported
	}
	return err
}

func addAuth(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	var credentials []byte
	if len(c.Args) > 1 {
		if credentials, err = c.secret(1); err != nil {
			return err
		}
	}
	return zk.AddAuth(ctx, c.Args[0], credentials)
}

func whoAmI(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	ids, err := zk.WhoAmI(ctx)
	if err != nil {
		return err
	}
	type identity struct {
		Scheme string `json:"scheme"`
		ID     string `json:"id"`
	}
	list := make([]identity, len(ids))
	for i, id := range ids {
		list[i] = identity{id.Scheme, id.ID}
	}
	return c.Emit(map[string]any{"identities": list}, func(w io.Writer) {
		fmt.Fprintln(w, "Auth scheme: User")
		for _, id := range ids {
			fmt.Fprintf(w, "%s: %s\n", id.Scheme, id.ID)
		}
	})
}
