// Package status is the picture of a server that operators get to see: by
// four-letter words, over HTTP, as metrics. It has the data only; how each of
// these spells them is theirs.
//
// It imports the standard library only.
package status

import (
	"strings"
	"time"
	"unicode"
)

// Source is a server that can be asked about itself. Every answer is a copy,
// consistent in itself.
type Source interface {
	Server() Server
	Conns() []Conn
	Configuration() Configuration
	Environment() []Pair
	Sessions() Sessions
	Watches() WatchSummary
	WatchesBySession() map[int64][]string
	WatchesByPath() map[string][]int64
	Dirs() (data, log int64) // bytes
	Digests() []Digest
	Metrics() []Metric
	TraceMask() uint64
	SetTraceMask(mask uint64)
	ResetServer() // srst
	ResetConns()  // crst
}

// Server sums a server up.
type Server struct {
	Version  string // as after "Zookeeper version: "
	Serving  bool   // clients are answered
	ReadOnly bool   // but only those that asked for it
	Reason   string // why not all are answered, in words
	Mode     string // standalone, leader, follower, observer, read-only
	ID       uint64
	LeaderID int64 // −1 when unknown
	Epoch    uint32
	// FileDiffers is the reconfig that would make the membership of the ensemble
	// what the server's configuration file lists; empty when it is.
	FileDiffers string
	// Level is the behaviour that the log has reached, Newest what this server
	// knows: they differ in the middle of an upgrade.
	Level, Newest uint32

	LatencyMin, LatencyMax int64 // milliseconds
	LatencyAvg             float64
	Received, Sent         int64
	Connections            int
	Outstanding            int64
	Zxid                   int64
	Nodes                  int
	Ephemerals             int
	DataSize               int64
	WatchCount             int
	GlobalSessions         int
	LocalSessions          int
	AuthFailed             int64
	Rejected               int64
	Uptime                 time.Duration
	OpenFDs, MaxFDs        int64
	LastReply              int64 // bytes; −1 before the first
	MinReply, MaxReply     int64

	// Leads says that the fields below mean something.
	Leads           bool
	LastProposal    int64 // bytes; −1 before the first
	MinProposal     int64
	MaxProposal     int64
	Learners        int
	SyncedFollowers int
	SyncedObservers int
	QuorumSize      int
	LeaderUptime    time.Duration
}

// Conn is a client's connection.
type Conn struct {
	Addr           string // ip:port
	Secure         bool
	Interest       int // 1: the server reads from it
	Queued         int64
	Received, Sent int64

	SessionID    int64 // 0: no session yet, and nothing below
	LastOp       string
	Established  time.Time
	Timeout      time.Duration
	LastCxid     int64 // −1: none
	LastZxid     int64
	LastResponse time.Duration // since the server's start
	LastLatency  int64         // milliseconds, as the following
	MinLatency   int64
	AvgLatency   int64
	MaxLatency   int64
	Expires      time.Time // when the server closes it unless it hears of it
}

// Configuration is what a server runs with.
type Configuration struct {
	ClientPort, SecureClientPort         int    // −1: none
	ClientAddress                        string // host:port of ClientPort
	DataDir, LogDir                      string
	DataDirSize, LogDirSize              int64
	TickTime                             time.Duration
	MaxClientCnxns                       int
	MinSessionTimeout, MaxSessionTimeout time.Duration
	ListenBacklog                        int
	ServerID                             uint64

	Ensemble                 bool // the fields below mean something
	InitLimit, SyncLimit     int
	ElectionPort, QuorumPort int
	Observer                 bool
	Membership               string // the text of the config node
	Text                     string // the whole file the server was started with
}

// Pair is a key and its value.
type Pair struct{ Key, Value string }

// Sessions is what is known of the sessions.
type Sessions struct {
	Expiry     map[time.Time][]int64 // on the leader: when each would end
	IDs        []int64               // all, sorted
	Timeouts   []time.Duration       // of IDs
	Ephemerals map[int64][]string
}

// WatchSummary counts the watches of the data list.
type WatchSummary struct{ Conns, Paths, Total int }

// Digest is the tree's digest at a zxid.
type Digest struct {
	Zxid   int64
	Digest uint64
}

// Metric is one of the lines that mntr has, without "zk_".
type Metric struct {
	Name, Value string
	Kind        MetricKind
	// Key tells those of one name apart, as that of a Summary.
	Key string
}

// Line is what mntr calls it, behind "zk_".
func (m *Metric) Line() string {
	if m.Key == "" {
		return m.Name
	}
	return Plain(m.Key) + "_" + m.Name
}

// Plain is a key as it stands in the name of a line: a blank or a line's end would
// make it another line, and tools give mntr up at the first name with anything but
// letters, digits and a few signs.
func Plain(key string) string {
	var b strings.Builder
	for i, r := range key {
		switch {
		case r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_', i > 0 && (r == '-' || r == '.'):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// MetricKind says what may be done with a Metric.
type MetricKind uint8

// The kinds.
const (
	Note    MetricKind = iota // text, a number that never changes here, or part of a Summary
	Gauge                     // goes up and down
	Counter                   // goes up, and back to 0 with srst
)

// Summary is the distribution of a quantity. Times are in milliseconds.
type Summary struct {
	Name, Key                string // Key tells those of one name apart: an id or a path; mostly empty
	Basic                    bool   // mntr shows no percentiles of it
	Count                    int64
	Sum, Min, Max, Mean      float64 // of all
	P50, P90, P95, P99, P999 float64 // of the latest minutes
}
