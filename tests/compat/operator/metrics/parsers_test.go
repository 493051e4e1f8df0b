package metrics

import (
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/tools"
)

// TestGoZookeeperReadsTheWords runs go-zookeeper's own parsers on the replies. Its srvr
// parser knows only the date format of ZooKeeper 3.4, so its result for our reply must be
// the same as for 3.9's; with a date in the old format it must parse everything.
func TestGoZookeeperReadsTheWords(t *testing.T) {
	t.Parallel()
	s := start(t)
	addr := s.ClientAddr()
	c := work(t, addr)
	servers := []string{addr}
	if ok := zk.FLWRuok(servers, patience); !ok[0] {
		t.Error("ruok: not ok")
	}
	// It reports the requesting connection as a client without a session; it does the same
	// with ZooKeeper's reply.
	clients, _ := zk.FLWCons(servers, patience)
	if len(clients) != 1 || len(clients[0].Clients) != 1 || clients[0].Clients[0].SessionID != c.Session ||
		clients[0].Clients[0].LastOperation != "SETD" || clients[0].Clients[0].Timeout != 30000 {
		t.Errorf("cons: %+v", clients[0])
	}
	stats, ok := zk.FLWSrvr(servers, patience)
	if ok || stats[0].Error == nil {
		t.Errorf("srvr: %+v: if it reads this year's dates, let this test want all of it", stats[0])
	}
	old := regexp.MustCompile(`built on (\d{4})-(\d\d)-(\d\d)`).ReplaceAllString(ask(t, addr, "srvr"), "built on $2/$3/$1")
	stats, ok = zk.FLWSrvr([]string{says(t, old)}, patience)
	if !ok || stats[0].Mode != zk.ModeStandalone || stats[0].Connections != 2 || stats[0].NodeCount < 5 || stats[0].Counter < 3 {
		t.Errorf("srvr with a date of then: %+v", stats[0])
	}
}

// says sends answer to the first connection, whatever the request, and returns its address.
func says(t *testing.T, answer string) (addr string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := l.Accept(); err == nil {
			_, _ = io.ReadFull(conn, make([]byte, 4))
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// TestGoZookeeperReadsBothAlike: it should parse our replies as it parses the real
// server's.
func TestGoZookeeperReadsBothAlike(t *testing.T) {
	needOracle(t)
	t.Parallel()
	theirs, ours := oracle.Start(t, oracle.Options{}), start(t)
	var errs []string
	for _, addr := range []string{theirs.Addr(), ours.ClientAddr()} {
		work(t, addr)
		stats, ok := zk.FLWSrvr([]string{addr}, patience)
		clients, fine := zk.FLWCons([]string{addr}, patience)
		errs = append(errs, strconv.FormatBool(ok)+strconv.FormatBool(fine)+strconv.Itoa(len(clients[0].Clients))+stats[0].Error.Error())
	}
	if errs[0] != errs[1] {
		t.Errorf("of ours %s, of ZooKeeper's %s", errs[1], errs[0])
	}
}

// TestKazooReadsTheWords makes Kazoo send the words, and checks the version it reads.
func TestKazooReadsTheWords(t *testing.T) {
	need(t, "python3")
	t.Parallel()
	python := tools.Find(t).Python
	const program = `
import sys
from kazoo.client import KazooClient
zk = KazooClient(hosts=sys.argv[1]); zk.start(timeout=60)
assert zk.command(b"ruok") == "imok"
assert zk.server_version()[:2] == (3, 9), zk.server_version()
# Kazoo reads 8 KiB of an answer, less than what ZooKeeper says here: the last line is cut.
lines = dict(line.split("\t") for line in zk.command(b"mntr").splitlines()[:-1])
assert lines["zk_server_state"] == "standalone" and int(lines["zk_znode_count"]) > 0 and float(lines["zk_avg_latency"]) >= 0
assert "Mode: standalone" in zk.command(b"stat")
conf = dict(line.split("=", 1) for line in zk.command(b"conf").splitlines())
assert int(conf["tickTime"]) == 2000
zk.stop(); print("all of it")
`
	if out, err := run("", python, "-c", program, start(t).ClientAddr()); err != nil || !strings.Contains(out, "all of it") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRepliesParseInOtherTools checks the replies against the assumptions of tools that can't run
// here; each entry describes how the tool parses.
func TestRepliesParseInOtherTools(t *testing.T) {
	t.Parallel()
	leader, follower, observer := ensemble(t)
	alone := start(t)
	for _, s := range []interface{ ClientAddr() string }{leader, follower, observer, alone} {
		addr := s.ClientAddr()
		work(t, addr)
		telegraf(t, ask(t, addr, "mntr"))
		exporter(t, ask(t, addr, "mntr"), ask(t, addr, "ruok"))
		datadog(t, ask(t, addr, "stat"))
		solr(t, ask(t, addr, "ruok"), ask(t, addr, "mntr"), ask(t, addr, "conf"))
	}
}

// telegraf parses each line with `^zk_(\w[\w\.\-]*)\s+([\w\.\-]+)`, requires the state, and
// treats a value as a number if it parses as one.
func telegraf(t *testing.T, mntr string) {
	t.Helper()
	line := regexp.MustCompile(`^zk_(\w[\w\.\-]*)\s+([\w\.\-]+)`)
	state := false
	for l := range strings.Lines(mntr) {
		m := line.FindStringSubmatch(l)
		if m == nil {
			t.Errorf("telegraf does not read %q", l)
			continue
		}
		state = state || m[1] == "server_state"
	}
	if !state {
		t.Error("telegraf finds no server_state")
	}
}

// exporter splits lines at blanks, reads the version up to the first comma, the state as a
// label, and everything else as a number.
func exporter(t *testing.T, mntr, ruok string) {
	t.Helper()
	if ruok != "imok" {
		t.Errorf("an exporter reads %q", ruok)
	}
	for l := range strings.Lines(strings.TrimRight(mntr, "\n")) {
		f := strings.Fields(l)
		switch f[0] {
		case "zk_version":
			if !regexp.MustCompile(`^\d+\.\d+\.\d+`).MatchString(f[1]) {
				t.Errorf("no version: %q", l)
			}
		case "zk_server_state", "zk_peer_state":
		default:
			if _, err := strconv.ParseFloat(f[1], 64); err != nil || len(f) != 2 {
				t.Errorf("an exporter takes %q for no number", l)
			}
		}
	}
}

// datadog reads stat line by line: the version, the clients up to a blank line, then one
// fact per line; the latency has three numbers.
func datadog(t *testing.T, stat string) {
	t.Helper()
	facts := regexp.MustCompile(`(?s)^Zookeeper version: (\d+\.\d+\.\d+)[^\n]*\nClients:\n( /[0-9.:]+\[\d+\]\([^\n]*\)\n)*\n` +
		`Latency min/avg/max: (\d+)/([\d.]+)/(\d+)\nReceived: (\d+)\nSent: (\d+)\nConnections: (\d+)\nOutstanding: (\d+)\n` +
		`Zxid: (0x[0-9a-f]+)\nMode: (\w+)\nNode count: (\d+)\n`)
	if !facts.MatchString(stat) {
		t.Errorf("Datadog does not read\n%s", stat)
	}
}

// solr wants "imok", splits lines of mntr at the tab, and lines of conf at the first equals
// sign unless they begin with "membership: " or "server.". It reads these keys for its
// page; on a leader it reads zk_synced_followers too.
func solr(t *testing.T, ruok, mntr, conf string) {
	t.Helper()
	all := map[string]string{"ruok": ruok}
	for l := range strings.Lines(mntr) {
		k, v, ok := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
		if !ok {
			t.Errorf("Solr cannot split %q", l)
		}
		all[k] = v
	}
	for l := range strings.Lines(conf) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "membership: ") || strings.HasPrefix(l, "server.") || strings.HasPrefix(l, "version=") {
			continue
		}
		k, v, ok := strings.Cut(l, "=")
		if !ok {
			t.Errorf("Solr cannot split %q", l)
		}
		all[k] = v
	}
	wanted := []string{"ruok", "clientPort", "secureClientPort", "zk_server_state", "zk_version", "zk_approximate_data_size",
		"zk_znode_count", "zk_num_alive_connections", "dataDir", "dataLogDir", "tickTime", "maxClientCnxns",
		"minSessionTimeout", "maxSessionTimeout", "serverId"}
	if all["zk_server_state"] == "leader" {
		wanted = append(wanted, "zk_synced_followers", "zk_followers")
	}
	for _, key := range wanted {
		if all[key] == "" {
			t.Errorf("Solr finds no %s", key)
		}
	}
}
