package move

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// TestJavaClientMovesOver: ZooKeeper's own client should keep its session, its ephemeral
// znode and its watch.
func TestJavaClientMovesOver(t *testing.T) {
	t.Parallel()
	need(t)
	zk := oracle.Start(t, options())
	here := freeAddr(t)
	c := connect(t, zk.Addr())
	must.Get(c.Create(ctx(t), "/java-watched", nil))(t)

	lib := must.Get(oracle.Dir())(t)
	holder := exec.CommandContext(ctx(t), "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", lib+string(os.PathListSeparator)+filepath.Join(lib, "*"),
		"testdata/Holder.java", zk.Addr()+","+here)
	holder.Stderr = os.Stderr
	in := must.Get(holder.StdinPipe())(t)
	out := must.Get(holder.StdoutPipe())(t)
	must.Do(t, holder.Start())
	t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	lines := bufio.NewScanner(out)
	said := func(word string) string {
		t.Helper()
		for lines.Scan() {
			if rest, is := strings.CutPrefix(lines.Text(), word+" "); is {
				return rest
			}
		}
		t.Fatalf("the client has ended before it said %q", word)
		return ""
	}
	next := func() { must.Get(io.WriteString(in, "\n"))(t) }

	session := said("holds")
	zk.Stop()
	data, _ := imported(t, zkfiles.Source{Data: dir(dataDir(zk))})
	start(t, data, here)
	next()
	if got := said("still"); got != session+" "+session {
		t.Errorf("owner and session are %s, the session was %s", got, session)
	}
	must.Get(connect(t, here).Set(ctx(t), "/java-watched", []byte("changed"), -1))(t)
	next()
	if got := said("watch"); got != "true" {
		t.Error("the watch did not come along")
	}
}
