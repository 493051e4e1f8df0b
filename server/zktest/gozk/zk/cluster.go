package zk

import (
	"io"
	"net"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/server/zktest/internal/testcluster"
)

const timeout = 15 * time.Second // of the sessions

// TestCluster is the ensemble that StartTestCluster has started.
type TestCluster struct {
	Path    string // the directory of all servers
	Servers []TestServer

	servers []*testcluster.Server
}

// TestServer is one of the servers.
type TestServer struct {
	Port int
	Path string // the directory of its data and its zoo.cfg
	Srv  interface {
		Start() error
		Stop() error
	}
	Config ServerConfigServer
}

// ServerConfigServer is a line of zoo.cfg that names a server.
type ServerConfigServer = testcluster.Config

// StartTestCluster starts size servers and waits until they serve. They log to stderr, which
// may be nil. They stop with the test.
func StartTestCluster(t zktest.TB, size int, _, stderr io.Writer) (*TestCluster, error) {
	t.Helper()
	tc := &TestCluster{Path: t.TempDir()}
	var err error
	if tc.servers, err = testcluster.Start(tc.Path, size, stderr); err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = tc.Stop() }) // the test may have stopped some
	for _, s := range tc.servers {
		tc.Servers = append(tc.Servers, TestServer{Port: s.Port, Path: s.Path, Srv: s, Config: s.Config})
	}
	return tc, nil
}

// Connect connects to one server.
func (tc *TestCluster) Connect(idx int) (*Conn, <-chan Event, error) {
	return Connect([]string{tc.Servers[idx].addr()}, timeout)
}

// ConnectAll connects to one of the servers, and moves when it fails.
func (tc *TestCluster) ConnectAll() (*Conn, <-chan Event, error) {
	return tc.ConnectAllTimeout(timeout)
}

// ConnectAllTimeout is ConnectAll with another timeout of the session.
func (tc *TestCluster) ConnectAllTimeout(sessionTimeout time.Duration) (*Conn, <-chan Event, error) {
	return Connect(tc.addrs(), sessionTimeout)
}

// ConnectWithOptions is ConnectAllTimeout with options of the client.
func (tc *TestCluster) ConnectWithOptions(sessionTimeout time.Duration, options ...func(*zk.Conn)) (*Conn, <-chan Event, error) {
	return connectWith(zk.Connect, tc.addrs(), sessionTimeout, options)
}

// connectWith calls connect with options. The client doesn't export the type O of its options.
func connectWith[O ~func(*zk.Conn)](connect func([]string, time.Duration, ...O) (*zk.Conn, <-chan zk.Event, error), servers []string,
	sessionTimeout time.Duration, options []func(*zk.Conn)) (*zk.Conn, <-chan zk.Event, error) {
	list := make([]O, len(options))
	for i, o := range options {
		list[i] = O(o)
	}
	return connect(servers, sessionTimeout, list...)
}

func (s *TestServer) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

func (tc *TestCluster) addrs() (addrs []string) {
	for i := range tc.Servers {
		addrs = append(addrs, tc.Servers[i].addr())
	}
	return addrs
}

// Stop stops all servers.
func (tc *TestCluster) Stop() error { return testcluster.Stop(tc.servers) }

// StartServer starts the server with the address again. It panics if no server has it.
func (tc *TestCluster) StartServer(addr string) { _ = testcluster.Find(tc.servers, addr).Start() }

// StopServer stops the server with the address. It panics if no server has it.
func (tc *TestCluster) StopServer(addr string) { _ = testcluster.Find(tc.servers, addr).Stop() }

// StartAllServers starts the servers that don't run, and waits until all serve.
func (tc *TestCluster) StartAllServers() error { return testcluster.StartAll(tc.servers) }

// StopAllServers is Stop.
func (tc *TestCluster) StopAllServers() error { return tc.Stop() }
