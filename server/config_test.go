package server

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/raftfsm"

	"github.com/zkgo/zkgo/tests/kit/must"
)

func TestInvalidConfigurations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"no directory":  {Config{}, "no data directory"},
		"id":            {Config{Memory: true, Quorum: Quorum{ID: 256, Members: []raftfsm.Member{{ID: 1}, {ID: 256}}}}, "0 to 255"},
		"timeouts":      {Config{Memory: true, MinSessionTimeout: time.Hour}, "minSessionTimeout"},
		"not listed":    {Config{Memory: true, Quorum: Quorum{ID: 3, Members: []raftfsm.Member{{ID: 1}, {ID: 2}}}}, "3"},
		"address taken": {Config{Memory: true, ClientAddr: "256.0.0.1:1"}, "clientPort"},
	} {
		if s, err := Start(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something about %q", name, err, c.want)
			if s != nil {
				s.Close()
			}
		}
	}
}

// On a ZooKeeper directory the server would show an empty tree, so it doesn't start and
// says what to do.
func TestZooKeeperDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := filepath.Join(dir, "version-2")
	if err := os.Mkdir(old, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := Config{DataDir: dir}.withDefaults()
	if err := checkDataDir(&cfg); err != nil {
		t.Errorf("an empty version-2: %v", err)
	}
	if err := os.WriteFile(filepath.Join(old, "snapshot.0"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), cfg)
	if !errors.Is(err, ErrZooKeeperData) || !strings.Contains(err.Error(), "zkgo import") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "wal")); err == nil {
		t.Error("the refused start left a log behind")
	}
}

// With datadir.autocreate=false, a missing directory isn't an empty one.
func TestNoAutocreate(t *testing.T) {
	t.Parallel()
	cfg := Config{DataDir: filepath.Join(t.TempDir(), "data"), NoAutocreate: true}
	if s, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "datadir.autocreate") {
		t.Errorf("%v", err)
		if s != nil {
			s.Close()
		}
	}
	if _, err := os.Stat(cfg.DataDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused start created it: %v", err)
	}
	if err := os.Mkdir(cfg.DataDir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestFromZooCfg(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	z, err := zoocfg.ParseText("zoo.cfg", "dataDir="+dir+`
clientPort=2199
clientPortAddress=127.0.0.1
tickTime=500
initLimit=7
syncLimit=3
maxClientCnxns=0
skipACL=yes
enforceQuota=true
4lw.commands.whitelist=ruok, mntr
quorumListenAddress=10.0.0.7
server.1=one:2888:3888;2181
server.2=two:2888:3888:observer
server.3=three:2888:3888
`, zoocfg.WithMyID(3))
	if err != nil {
		t.Fatal(err)
	}
	c, err := fromZooCfg(z, allFormats())
	if err != nil {
		t.Fatal(err)
	}
	if c.Quorum.ID != 3 || c.ClientAddr != "127.0.0.1:2199" || c.TickTime != 500*time.Millisecond || c.Quorum.InitLimit != 7 || c.Quorum.SyncLimit != 3 ||
		c.Limits.MaxClientCnxns > 0 || !c.Auth.SkipACL || !c.Znodes.EnforceQuota || c.DataDir != dir || c.MinSessionTimeout != time.Second || c.Quorum.ListenHost != "10.0.0.7" {
		t.Errorf("%+v", c)
	}
	if len(c.FourLetterWords) != 2 || len(c.Quorum.Members) != 3 {
		t.Fatalf("%q %+v", c.FourLetterWords, c.Quorum.Members)
	}
	want := raftfsm.Member{ID: 1, QuorumAddr: "one:2888", ElectionAddr: "one:3888", ClientAddr: "0.0.0.0:2181",
		ConfigNodeTxt: "server.1=one:2888:3888:participant;0.0.0.0:2181"}
	if !reflect.DeepEqual(c.Quorum.Members[0], want) || !c.Quorum.Members[1].Observer {
		t.Errorf("%+v", c.Quorum.Members)
	}
}

// State on disk should survive the server, and a restarted server should be ready
// immediately.
func TestRestart(t *testing.T) {
	t.Parallel()
	cfg := Config{DataDir: t.TempDir()}
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	<-s.Ready()
	w := connect(t, s)
	w.create("/kept", []byte("x"), 0)
	w.create("/e", nil, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	w.wantClosed()
	if _, err := s.Dial(); !errors.Is(err, ErrClosed) {
		t.Errorf("Dial of a closed server: %v", err)
	}
	again := startServer(t, func(c *Config) { c.Memory, c.DataDir = false, cfg.DataDir })
	next := w.again(again, w.resp.Passwd)
	if data, _ := next.get("/kept", false); data != "x" || next.resp.SessionID != w.resp.SessionID {
		t.Errorf("%q, session %x", data, next.resp.SessionID)
	}
	if _, st := next.get("/e", false); st.EphemeralOwner != w.resp.SessionID {
		t.Errorf("owner %x", st.EphemeralOwner)
	}
}

func TestLimitsFromZooCfg(t *testing.T) {
	t.Parallel()
	read := func(lines string) Config {
		z, err := zoocfg.ParseText("zoo.cfg", "dataDir="+t.TempDir()+"\n"+lines)
		if err != nil {
			t.Fatal(err)
		}
		c, err := fromZooCfg(z, allFormats())
		if err != nil {
			t.Fatal(err)
		}
		return c.withDefaults()
	}
	c := read("")
	if c.Limits.ConnThrottle != nil || c.Limits.RequestThrottle.on() || c.Auth.EagerACL || limits.NewLarge(c.Limits.LargeRequestAbove, 0).Bounds() || c.Limits.LargeRequestMax != 100<<20 {
		t.Errorf("without a line: %+v", c)
	}
	if want := limits.SystemMemory() / 100 * 80; c.Limits.MemoryCeiling != want {
		t.Errorf("ceiling %d, want %d", c.Limits.MemoryCeiling, want)
	}
	c = read("largeRequestThreshold=0\nlargeRequestMaxBytes=9\nmemoryCeiling=1g\nenableEagerACLCheck=true\n" +
		"request_throttle_max_requests=4\nthrottled_op_wait_time=5\nrequest_stale_latency_check=true\n")
	if limits.NewLarge(c.Limits.LargeRequestAbove, 0).Above != 1 || c.Limits.LargeRequestMax != 9 || c.Limits.MemoryCeiling != 1<<30 || !c.Auth.EagerACL {
		t.Errorf("%+v", c)
	}
	if want := (RequestThrottle{MaxRequests: 4, StallTime: 100 * time.Millisecond, DropStale: true, StaleLatency: true, OpWait: 5 * time.Millisecond}); c.Limits.RequestThrottle != want {
		t.Errorf("%+v", c.Limits.RequestThrottle)
	}
	c = read("memoryCeiling=off\nconnection_throttle_tokens=10\nconnection_throttle_fill_count=2\n" +
		"connection_throttle_local_session_weight=5\nconnection_throttle_freeze_time=50\nconnection_throttle_decrease_ratio=0.5\n")
	want := ConnThrottle{Tokens: 10, FillTime: time.Millisecond, FillCount: 2, FreezeTime: 50 * time.Millisecond,
		DropIncrease: 0.02, DropDecrease: 0.002, DecreaseRatio: 0.5, New: 1, Renewed: 1}
	if c.Limits.MemoryCeiling != 0 || *c.Limits.ConnThrottle != want {
		t.Errorf("%d, %+v", c.Limits.MemoryCeiling, c.Limits.ConnThrottle)
	}
	// With weights, the bucket is counted in global sessions, and no session weighs
	// less than a local one.
	c = read("connection_throttle_tokens=10\nconnection_throttle_weight_enabled=true\nconnection_throttle_local_session_weight=4\n")
	if x := c.Limits.ConnThrottle; x.Tokens != 40 || x.FillCount != 4 || x.New != 4 || x.Renewed != 4 {
		t.Errorf("%+v", x)
	}
}

// TestBindRetryOfTheFile translates electionPortBindRetry.
func TestBindRetryOfTheFile(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{"": 3, "electionPortBindRetry=0": -1, "electionPortBindRetry=7": 7} {
		z, err := zoocfg.ParseText("zoo.cfg", "dataDir="+t.TempDir()+"\nclientPort=2181\n"+line)
		if err != nil {
			t.Fatal(err)
		}
		c, err := fromZooCfg(z, allFormats())
		if c = c.withDefaults(); err != nil || c.Quorum.BindTries != want || len(z.Ignored) > 0 {
			t.Errorf("%q: %d attempts, %v, ignored %v", line, c.Quorum.BindTries, err, z.Ignored)
		}
	}
}

// TestWarningsOfTheFile checks that an embedding program gets LoadConfig's warnings.
func TestWarningsOfTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zoo.cfg")
	must.Do(t, os.WriteFile(path, []byte("dataDir=/data\nclientPort=2181\nclientProt=2182\n"), 0o600))
	c := must.Get(LoadConfig(path))(t)
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], path+":3") || !strings.Contains(w[0], "clientProt") {
		t.Errorf("%q", w)
	}
	if w := (Config{}).Warnings(); w != nil {
		t.Errorf("without a file: %q", w)
	}
}
