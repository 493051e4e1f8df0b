package metrics

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/prom"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// patience bounds every wait; the tests measure no times.
const patience = 90 * time.Second

// need skips the test unless the environment asks for it, and fails it if a tool is
// missing.
func need(t *testing.T, tools ...string) {
	t.Helper()
	if os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("runs what a server's operator has installed; set ZKGO_REQUIRE=1")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("ZKGO_REQUIRE=1, but %s is not installed", tool)
		}
	}
}

// needOracle is need for tests with the real ZooKeeper.
func needOracle(t *testing.T) {
	t.Helper()
	need(t, "java")
	if os.Getenv("ZKGO_LIVE") != "1" {
		t.Skip("runs the real ZooKeeper; set ZKGO_LIVE=1")
	}
	oracle.Need(t)
}

// start starts a server with its own port and directory.
func start(t *testing.T, change ...func(*server.Config)) *server.Server {
	t.Helper()
	c := server.Config{
		DataDir: t.TempDir(), ClientAddr: "127.0.0.1:0", FourLetterWords: []string{"*"}, Limits: server.Limits{MaxClientCnxns: -1},
		Metrics: &server.Metrics{Addr: "127.0.0.1:0", Process: true, Handler: prom.Handler},
	}
	for _, f := range change {
		f(&c)
	}
	s := must.Get(server.Start(t.Context(), c))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ensemble starts three voters and an observer, and returns one of each role.
func ensemble(t *testing.T) (leader, follower, observer *server.Server) {
	t.Helper()
	network := quorum.NewMemory()
	var members []raftfsm.Member
	for id := uint64(1); id <= 4; id++ {
		host := "host" + strconv.FormatUint(id, 10)
		members = append(members, raftfsm.Member{ID: id, QuorumAddr: host + ":2888", ElectionAddr: host + ":3888", Observer: id == 4})
	}
	var all []*server.Server
	for _, m := range members {
		all = append(all, start(t, func(c *server.Config) {
			host, _, _ := net.SplitHostPort(m.QuorumAddr)
			c.Quorum.ID, c.Quorum.Members, c.Env.Network = m.ID, members, network.Host(host)
		}))
	}
	for _, s := range all {
		wait.Eventually(t, "a server serves", func() bool { return s.Node().Status().Serving })
		switch s.Node().Status().Role {
		case raftfsm.Leader:
			leader = s
		case raftfsm.Follower:
			follower = s
		case raftfsm.Observer:
			observer = s
		}
	}
	if leader == nil || follower == nil || observer == nil {
		t.Fatal("not one of each role")
	}
	return leader, follower, observer
}

// scrape reads /metrics.
func scrape(t *testing.T, addr string) string {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	must.Do(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return string(b)
}

// work connects a client and makes it use most kinds of operation.
func work(t *testing.T, addr string) *process.Client {
	t.Helper()
	c := must.Get(process.Connect(addr, 0, nil, 30*time.Second))(t)
	t.Cleanup(func() { _ = c.Close() })
	do := func(op proto.Op, req proto.Record) {
		if r, err := c.Do(op, req); err != nil || r.Err != proto.Ok {
			t.Fatalf("%v: %v, %v", op, r.Err, err)
		}
	}
	path := fmt.Sprintf("/at-%s", strings.ReplaceAll(addr, ":", "-"))
	do(proto.OpCreate, &proto.CreateRequest{Path: path, Data: []byte("data"), ACL: proto.OpenACL()})
	do(proto.OpGetData, &proto.GetDataRequest{Path: path, Watch: true})
	do(proto.OpSetData, &proto.SetDataRequest{Path: path, Data: []byte("other"), Version: -1})
	return c
}

// run runs a program and returns its output.
func run(stdin, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
