package cli

import (
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// once is one command given as arguments.
type once struct {
	args []string
	// The difference of zkgo cli and its reason; empty if there is none.
	code     int
	out, err string
	why      string
}

// TestExitCode passes commands as arguments and compares output, streams and exit code.
func TestExitCode(t *testing.T) {
	process.Needed(t)
	oracle.Need(t)
	real, own := zookeeper(t), zookeeper(t)
	for _, c := range []once{
		{args: []string{"create", "/a", "two words"}},
		{args: []string{"get", "/a"}},
		{args: []string{"ls", "/nothing"}},
		{args: []string{"get", "-q", "/a"}, code: 2, err: "Unrecognized option: -q\n", why: "a wrong command line has a code of its own"},
		{args: []string{"setAcl", "/a", "foo"}, code: 2, err: "foo does not have the form scheme:id:perm\nAcl is not valid : null\n", why: "a wrong command line has a code of its own"},
		{args: []string{"redo", "5"}},
		{args: []string{"quit"}},
		{
			args: []string{"deleteall", "/zookeeper"}, code: 1,
			err: "Failed to delete some node(s) in the subtree!\nArguments are not valid : /zookeeper/quota\n",
			why: "a script has to see the failure, and somebody the reason",
		},
		{args: []string{"listquota", "/a"}, code: 1, err: "absolute path is /zookeeper/quota/a/zookeeper_limits\nquota for /a does not exist.\n", why: "a script has to see the failure"},
		{args: []string{"setquota", "-n", "0", "/a"}, code: 2, err: "the num quota must be greater than zero\n", why: "a script has to see the failure"},
		{args: []string{"delete", "-v", "x", "/a"}, code: 2, err: "a version is a number, not \"x\"\n", why: "zkCli.sh dies of an exception"},
		{args: []string{"set", "-b", "/a", "!"}, code: 2, err: "the data is not valid base64: illegal base64 data at input byte 0\n", why: "zkCli.sh dies of an exception"},
		{args: []string{"addWatch", "relative"}, code: 2, err: "Path must start with / character\n", why: "zkCli.sh dies of an exception"},
		{args: []string{"addauth", "nothing", "x"}, code: 1, err: "KeeperErrorCode = AuthFailed\n", why: "zkCli.sh does not wait for the answer"},
		{
			args: []string{"get", "/a", "/b"}, code: 1, out: "/a:\ntwo words\n", err: "Node does not exist: /b\n",
			why: "zkCli.sh takes it for the word watch and prints one znode",
		},
		{
			args: []string{"create", "/missing/child"}, code: 1,
			err: "Node does not exist: /missing, the parent of /missing/child: create -p creates the parents as well\n",
			why: "zkCli.sh does not say which znode is missing",
		},
		{
			args: []string{"delete", "/a", "7"}, code: 1,
			err: "'delete path [version]' has been deprecated. Please use 'delete [-v version] path' instead.\nversion No is not valid : /a\n",
			why: "zkCli.sh ignores the version and deletes",
		},
	} {
		name := strings.Join(c.args, " ")
		want := clean(run(t, java(t, append([]string{"-server", real}, c.args...)...), ""))
		got := clean(run(t, ours(t, append([]string{"-server", own}, c.args...)...), ""))
		switch {
		case c.why == "" && want != got:
			t.Errorf("%s\nzkCli.sh: %+v\nzkgo cli: %+v", name, want, got)
		case c.why != "" && want == got:
			t.Errorf("%s: no difference, though one is expected: %s", name, c.why)
		case c.why != "" && got != (result{c.out, c.err, c.code}):
			t.Errorf("%s\nwant, for %s: %+v\ngot: %+v", name, c.why, result{c.out, c.err, c.code}, got)
		}
	}
}

// clean removes the messages about the connection.
func clean(r result) result {
	r.out = normal(watched.ReplaceAllString(r.out, ""))
	// zkgo cli has them on the error stream, because standard output is for data.
	r.err = normal(watched.ReplaceAllString(r.err, ""))
	return r
}
