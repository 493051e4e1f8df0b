package server

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/listen"
	"github.com/zkgo/zkgo/internal/ops/metrics"
	"github.com/zkgo/zkgo/proto"
)

// TestClientPortFollowsReconfig changes a server's client port. The server listens at the
// new address without a restart, and an open connection stays. If the new port is in use,
// the old one stays open.
func TestClientPortFollowsReconfig(t *testing.T) {
	e := startEnsemble(t, 3, func(c *Config) { c.Quorum.Reconfig, c.Auth.SkipACL, c.ClientAddr = true, true, "127.0.0.1:0" })
	_, others := e.leader()
	s := others[0]
	eventually(t, "the state tells named lines apart", func() bool { now, newest := s.Node().Level(); return now == newest })
	w, old := connect(t, s), s.ClientAddr()
	open, err := net.Dial("tcp", old)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	to := func(addr string) {
		w.must(proto.OpReconfig, &proto.ReconfigRequest{Joining: fmt.Sprintf("server.%d=%s:2888:3888;%s", s.cfg.Quorum.ID, host(int(s.cfg.Quorum.ID)), addr),
			Leaving: proto.NullString, NewMembers: proto.NullString, CurConfigID: -1})
	}
	to(taken.Addr().String())
	if c, err := net.Dial("tcp", old); err != nil || s.ClientAddr() != old {
		t.Fatalf("the new port is in use, and the old one answers %v, server at %s", err, s.ClientAddr())
	} else {
		_ = c.Close()
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	next := free.Addr().String()
	_ = free.Close()
	to(next)
	eventually(t, "the server listens at the new port", func() bool { return s.ClientAddr() == next })
	if p := sourceOf(s).Configuration(); p.ClientPort != listen.PortOf(next) {
		t.Errorf("conf says %d, want %s", p.ClientPort, next)
	}
	eventually(t, "the old port is closed", func() bool {
		c, err := net.Dial("tcp", old)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	if _, err := open.Write([]byte("ruok")); err != nil {
		t.Error(err)
	}
	answer := make([]byte, 4)
	if n, err := open.Read(answer); err != nil || !strings.HasPrefix(string(answer[:n]), "imok") {
		t.Errorf("an old connection: %q, %v", answer[:n], err)
	}
	c, err := net.Dial("tcp", next)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// A reconfig may set a client address at which the server has its AdminServer or its
// metrics port. The server continues at the old address, says once which key to change,
// and moves when a reconfig sets an address that is free.
func TestClientAddressThatIsAnotherPortOfTheServer(t *testing.T) {
	var log logBuffer
	e := startEnsemble(t, 3, func(c *Config) {
		c.Quorum.Reconfig, c.Auth.SkipACL, c.ClientAddr, c.Logger = true, true, "127.0.0.1:0", slog.New(slog.NewTextHandler(&log, nil))
		c.Admin, c.Metrics = &Admin{Addr: "127.0.0.1:0"}, &Metrics{Addr: "127.0.0.1:0", Handler: metrics.Handler}
	})
	_, others := e.leader()
	s := others[0]
	eventually(t, "the state tells named lines apart", func() bool { now, newest := s.Node().Level(); return now == newest })
	w, old := connect(t, s), s.ClientAddr()
	to := func(addr string) {
		w.must(proto.OpReconfig, &proto.ReconfigRequest{Joining: fmt.Sprintf("server.%d=%s:2888:3888;%s", s.cfg.Quorum.ID, host(int(s.cfg.Quorum.ID)), addr),
			Leaving: proto.NullString, NewMembers: proto.NullString, CurConfigID: -1})
	}
	for key, addr := range map[string]string{"admin.serverPort": s.AdminAddr(), "metricsProvider.httpPort": s.MetricsAddr()} {
		to(addr)
		warning := "change " + key + " in the configuration file"
		eventually(t, "a warning about "+key, func() bool { return strings.Contains(log.String(), warning) })
		connect(t, s)      // at the old address
		s.membersChanged() // it tries again
		s.membersChanged()
		if n := strings.Count(log.String(), warning); n != 1 || s.ClientAddr() != old {
			t.Errorf("%d warnings about %s, and the server listens at %s, want %s", n, key, s.ClientAddr(), old)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	next := free.Addr().String()
	_ = free.Close()
	to(next)
	eventually(t, "the server listens at the new port", func() bool { return s.ClientAddr() == next })
}

// A reconfig may leave a server's line without a client address. The server should
// immediately warn about its next start.
func TestALineWithoutAClientAddressIsReported(t *testing.T) {
	var log logBuffer
	e := startEnsemble(t, 3, func(c *Config) {
		c.Quorum.Reconfig, c.Auth.SkipACL, c.ClientAddr, c.Logger = true, true, "127.0.0.1:0", slog.New(slog.NewTextHandler(&log, nil))
	})
	_, others := e.leader()
	s := others[0]
	eventually(t, "the state tells named lines apart", func() bool { now, newest := s.Node().Level(); return now == newest })
	var list []string
	for line := range strings.Lines(string(s.Node().Membership())) {
		if strings.HasPrefix(line, fmt.Sprintf("server.%d=", s.cfg.Quorum.ID)) {
			line = fmt.Sprintf("server.%d=%s:2888:3888", s.cfg.Quorum.ID, host(int(s.cfg.Quorum.ID)))
		}
		if strings.HasPrefix(line, "server.") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	next := free.Addr().String()
	_ = free.Close()
	w := connect(t, s)
	w.must(proto.OpReconfig, &proto.ReconfigRequest{Joining: fmt.Sprintf("server.%d=%s:2888:3888;%s", s.cfg.Quorum.ID, host(int(s.cfg.Quorum.ID)), next),
		Leaving: proto.NullString, NewMembers: proto.NullString, CurConfigID: -1})
	eventually(t, "the server listens at the new port", func() bool { return s.ClientAddr() == next })
	w.must(proto.OpReconfig, &proto.ReconfigRequest{Joining: proto.NullString, Leaving: proto.NullString,
		NewMembers: strings.Join(list, ","), CurConfigID: -1})
	eventually(t, "the warning", func() bool { return strings.Contains(log.String(), "removed the client address") })
	if n := strings.Count(log.String(), "removed the client address"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}
