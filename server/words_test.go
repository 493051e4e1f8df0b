package server

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/proto"
)

// word sends a four-letter word to a server.
func word(t *testing.T, s *Server, ask string) string {
	t.Helper()
	w := dial(t, s)
	w.write([]byte(ask))
	b, err := io.ReadAll(w.nc)
	if err != nil {
		t.Fatalf("%s: %v", ask, err)
	}
	return string(b)
}

// answer returns the answer to a four-letter word that no connection asks for.
func answer(t *testing.T, s *Server, name string) string {
	t.Helper()
	var b strings.Builder
	if err := fourletter.Answer(&b, name, nil, sourceOf(s), ""); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFourLetterWords(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	w.create("/e", []byte("x"), proto.ModeEphemeral)
	w.get("/e", true)
	w.must(proto.OpGetChildren, &proto.GetChildrenRequest{Path: "/", Watch: true})
	eventually(t, "the leader's tracker has the session", func() bool { return len(s.Node().Deadlines()) == 1 })
	for ask, want := range map[string]string{
		"ruok": `^imok$`,
		"isro": `^rw$`,
		"srvr": `^Zookeeper version: 3\.9\.5-zkgo\S+-\S+, built on \d{4}-\d\d-\d\d \d\d:\d\d UTC\n` +
			`Latency min/avg/max: \d+/\d+\.\d+/\d+\nReceived: \d+\nSent: \d+\nConnections: \d+\nOutstanding: 0\n` +
			`Zxid: 0x2\nMode: standalone\nNode count: 6\n$`,
		"stat": `^Zookeeper version: .*\nClients:\n( /client-\d+\[[01]\]\(queued=0,recved=\d+,sent=\d+\)\n)+\nLatency .*\n`,
		"cons": `(?m)^ /client-\d+\[1\]\(queued=0,recved=\d+,sent=\d+,sid=0x100000000000001,lop=GETC,est=\d+,to=30000,` +
			`lcxid=0x3,lzxid=0x2,lresp=\d+,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)\n`,
		"conf": `^clientPort=-1\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\ntickTime=2000\n` +
			`maxClientCnxns=60\nminSessionTimeout=4000\nmaxSessionTimeout=40000\nclientPortListenBacklog=-1\nserverId=0\n$`,
		"envi": `^Environment:\nzookeeper\.version=3\.9\.5-(.*\n)+os\.memory\.total=\d+MB\n$`,
		"dump": `^SessionTracker dump:\nSession Sets \(\d+\)/\(1\):\n1 expire at \w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}:\n\t0x100000000000001\n` +
			`ephemeral nodes dump:\nSessions with Ephemerals \(1\):\n0x100000000000001:\n\t/e\nConnections dump:\nConnections Sets \(\d+\)/\(\d+\):\n`,
		"wchs": `^1 connections watching 1 paths\nTotal watches:1\n$`,
		"wchc": `^0x100000000000001\n\t/e\n\n$`,
		"wchp": `^/e\n\t0x100000000000001\n\n$`,
		"dirs": `^datadir_size: 0\nlogdir_size: 0\n$`,
		"hash": `^$`,
		"gtmk": `^306$`,
		"mntr": `^zk_version\t3\.9\.5.*\nzk_server_state\tstandalone\nzk_ephemerals_count\t1\n(zk_\w+\t\S+\n)*zk_watch_count\t2\n(zk_\w+\t\S+\n)*$`,

		"stmk\x00\x00\x00\x00\x00\x00\x01\x32": `^306$`,
	} {
		if got := word(t, s, ask); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s:\n%s\nwant\n%s", ask, got, want)
		}
	}
	if got := word(t, s, "srst"); got != "Server stats reset.\n" {
		t.Errorf("srst: %q", got)
	}
	if got := word(t, s, "srvr"); !strings.Contains(got, "Received: 1\n") { // this word itself
		t.Errorf("after srst: %q", got)
	}
}

// cons should count the handshake and keep the last xid at a ping, and crst should reset the
// counters.
func TestConsFollowsAConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	const since, rest = `,sid=0x100000000000001,lop=%s,est=\d+,to=30000,%s`, `,lresp=\d+,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)\n`
	want := func(counts, lop, ids string) {
		t.Helper()
		line := ` /client-\d+\[1\]\(queued=0,` + counts + fmt.Sprintf(since, lop, ids) + rest
		if got := word(t, s, "cons"); !regexp.MustCompile(line).MatchString(got) {
			t.Errorf("%s\nwant %s", got, line)
		}
	}
	want("recved=1,sent=1", "SESS", "lcxid=0x0,lzxid=0x1")
	w.get("/", false)
	want("recved=2,sent=2", "GETD", "lcxid=0x1,lzxid=0x1")
	w.write(appendRequest(nil, proto.XidPing, proto.OpPing, nil))
	w.recv()
	want("recved=3,sent=3", "PING", "lcxid=0x1,lzxid=0x1")
	if got := word(t, s, "crst"); got != "Connection stats reset.\n" {
		t.Errorf("crst: %q", got)
	}
	want("recved=0,sent=0", "NA", "lzxid=0xffffffffffffffff")
	if got := word(t, s, "stat"); !regexp.MustCompile(`\[0\]\(queued=0,recved=1,sent=0\)`).MatchString(got) {
		t.Errorf("the connection that asks: %s", got)
	}
}

func TestWordsThatAreNotAllowed(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.FourLetterWords = nil })
	for _, ask := range fourletter.Words() {
		want := ask + " is not executed because it is not in the whitelist.\n"
		if got := word(t, s, ask); (got == want) == (ask == "srvr") {
			t.Errorf("%s: %q", ask, got)
		}
	}
	w := dial(t, s)
	w.write([]byte("what"))
	w.wantClosed()
}

// A word may arrive in pieces, and any bytes after it don't matter.
func TestWordInPieces(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := dial(t, s)
	for _, part := range []string{"r", "uo", "k\n and more"} {
		w.write([]byte(part))
	}
	b, err := io.ReadAll(w.nc)
	if err != nil || string(b) != "imok" {
		t.Errorf("%q, %v", b, err)
	}
}

// Whatever else a client sends, it reads the answer and then the end of the stream, not
// a reset.
func TestWordFollowedByMoreBytes(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.ClientAddr = "127.0.0.1:0" })
	nc, err := net.Dial("tcp", s.ClientAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_, _ = nc.Write([]byte("ruok" + strings.Repeat("x", 200_000))) // fails if the server is faster
	if b, err := io.ReadAll(nc); err != nil || string(b) != "imok" {
		t.Errorf("%q, %v", b, err)
	}
}

// A follower doesn't know when sessions expire.
func TestDumpOfAFollower(t *testing.T) {
	inEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		leader, others := e.leader()
		connect(t, others[0]) // this server has then applied the session, like the leader
		for s, want := range map[*Server]string{
			leader:    `^SessionTracker dump:\nSession Sets \(\d+\)/\(1\):\n`,
			others[0]: `^SessionTracker dump:\nGlobal Sessions\(1\):\n0x[0-9a-f]+\t30000ms\nephemeral nodes dump:\n`,
		} {
			if got := answer(t, s, "dump"); !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("%s, want %s", got, want)
			}
			if got := answer(t, s, "hash"); got != "" {
				t.Errorf("hash: %q before there were 128 transactions", got)
			}
		}
	})
}

func TestHashListsEvery128thDigest(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	for range 300 {
		w.set("/", "x")
	}
	if got := word(t, s, "hash"); !regexp.MustCompile(`^80: \d+\n100: \d+\n$`).MatchString(got) {
		t.Errorf("%q", got)
	}
}
