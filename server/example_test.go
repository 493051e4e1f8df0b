package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server"
)

// A server that keeps everything in memory and opens no port, e.g. for use inside a
// program or a test.
func ExampleStart() {
	ctx := context.Background()
	srv, err := server.Start(ctx, server.Config{Memory: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	dial := func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }
	c, err := client.Connect(ctx, "embedded", client.WithDialer(dial))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	path, err := c.Create(ctx, "/hello", []byte("world"))
	fmt.Println(path, err)
	// Output: /hello <nil>
}

// A server that keeps its data in a directory and listens on a port.
func ExampleStart_onDisk() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "zkgo")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	srv, err := server.Start(ctx, server.Config{
		DataDir:    dir,
		ClientAddr: "127.0.0.1:0", // a free port; without ClientAddr only Dial reaches the server
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	c, err := client.Connect(ctx, srv.ClientAddr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, there, err := c.Exists(ctx, "/zookeeper")
	fmt.Println(there, err)
	// Output: true <nil>
}

// With nothing but a directory, the server opens no port: clients connect through Dial. The
// server is a line for the program's log.
func ExampleServer_String() {
	dir, err := os.MkdirTemp("", "zkgo")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	srv, err := server.Start(context.Background(), server.Config{DataDir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	<-srv.Ready()
	fmt.Println(strings.Replace(srv.String(), dir, "/data", 1))
	// Output: zkgo server 1 (standalone): no port, only Dial; data in "/data"; serving
}

// Three servers of an ensemble in one program. A program with a server on each machine
// passes the same Members to each of them.
func ExampleStart_ensemble() {
	ctx := context.Background()
	ports, err := freePorts(6)
	if err != nil {
		fmt.Println(err)
		return
	}
	var members []raftfsm.Member
	for i := range 3 {
		members = append(members, raftfsm.Member{ID: uint64(i + 1), QuorumAddr: ports[2*i], ElectionAddr: ports[2*i+1]})
	}
	var addrs []string
	for _, m := range members {
		srv, err := server.Start(ctx, server.Config{
			Memory: true, ClientAddr: "127.0.0.1:0",
			Quorum: server.Quorum{ID: m.ID, Members: members},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer srv.Close()
		addrs = append(addrs, srv.ClientAddr())
	}

	c, err := client.Connect(ctx, strings.Join(addrs, ","))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	path, err := c.Create(ctx, "/hello", []byte("world"))
	fmt.Println(path, err)
	// Output: /hello <nil>
}

// freePorts returns addresses that servers can listen on.
func freePorts(n int) (addrs []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

// A server with TLS and a certificate of the program. For ZooKeeper's key stores, see
// server/formats.
func ExampleTLS() {
	ctx := context.Background()
	cert, roots := certificate() // e.g. tls.LoadX509KeyPair
	srv, err := server.Start(ctx, server.Config{
		Memory: true, SecureAddr: "127.0.0.1:0",
		TLS: &server.TLS{Config: &tls.Config{Certificates: []tls.Certificate{cert}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	c, err := client.Connect(ctx, srv.ClientAddr(), client.WithTLS(&tls.Config{RootCAs: roots}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, there, err := c.Exists(ctx, "/zookeeper")
	fmt.Println(there, err, srv.Connections()[0].Secure)
	// Output: true <nil> true
}

// certificate returns a certificate for 127.0.0.1, and the pool that trusts it.
func certificate() (tls.Certificate, *x509.CertPool) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s.TLS.Certificates[0], pool
}

// The server logs only through the given logger. Without a logger, it logs nothing.
func ExampleConfig_logger() {
	show := func(_ []string, a slog.Attr) slog.Attr { // omits fields that differ from run to run
		if slices.Contains([]string{slog.LevelKey, slog.MessageKey, "app", "serving"}, a.Key) {
			return a
		}
		return slog.Attr{}
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: show}))
	srv, err := server.Start(context.Background(), server.Config{Memory: true, Logger: log.With("app", "jobs")})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-srv.Ready()
	fmt.Println(srv.Close())
	// Output:
	// level=INFO msg="server state changed" app=jobs serving=true
	// <nil>
}

// A server with a zoo.cfg. Warnings are for the file's author: the server starts anyway.
func ExampleLoadConfig() {
	dir, err := os.MkdirTemp("", "zkgo")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "zoo.cfg")
	text := "dataDir=" + dir + "\nclientPort=0\nadmin.enableServer=false\ntickTme=2000\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	cfg, err := server.LoadConfig(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range cfg.Warnings() {
		fmt.Println(strings.TrimPrefix(w, dir))
	}
	srv, err := server.Start(context.Background(), cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	<-srv.Ready()
	fmt.Println(srv.Status().Mode, srv.Status().Serving)
	// Output:
	// /zoo.cfg:4: tickTme: unknown key, did you mean tickTime?
	// standalone true
}
