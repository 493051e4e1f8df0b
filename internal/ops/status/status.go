// Package status is the snapshot of a server's state that operators see through
// four-letter words, over HTTP, and as metrics. It contains the data only; each of
// these formats it differently.
//
// It imports the standard library only.
package status

import (
	"strings"
	"time"
	"unicode"
)

// Source provides the state of a server. Every result is a consistent copy.
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

// Server is a summary of a server.
type Server struct {
	Version  string // as after "Zookeeper version: "
	Serving  bool   // the server serves clients
	ReadOnly bool   // only clients that asked for read-only mode are served
	Reason   string // why some or all clients aren't served
	Mode     string // standalone, leader, follower, observer, read-only
	ID       uint64
	LeaderID int64 // −1 if unknown
	Epoch    uint32
	// FileDiffers is the reconfig that would make the ensemble's membership match the
	// server's configuration file; empty if they match.
	FileDiffers string
	// Level is the behaviour level that the log has reached, Newest the highest that
	// this server supports. They differ during an upgrade.
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

	// Leads reports whether the fields below are valid.
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

// Observer is an observer that gets this server's state at the observerMasterPort.
type Observer struct {
	Name            string // its number and the address that it calls from
	LagTransactions int64  // applied here and not sent to it
	LagMillis       int64  // since it is known to have been up to date
}

// Conn is a client's connection.
type Conn struct {
	Addr           string // ip:port
	Secure         bool
	Interest       int // 1: the server reads from the connection
	Queued         int64
	Received, Sent int64

	SessionID    int64 // 0: no session yet, and the fields below are unset
	LastOp       string
	Established  time.Time
	Timeout      time.Duration
	LastCxid     int64 // −1: none yet
	LastZxid     int64
	LastResponse time.Duration // since the server's start
	LastLatency  int64         // milliseconds, as are the next three
	MinLatency   int64
	AvgLatency   int64
	MaxLatency   int64
	Expires      time.Time // when the server closes it if it receives nothing
}

// Configuration is a server's effective configuration.
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

	Ensemble                 bool // whether the fields below are set
	InitLimit, SyncLimit     int
	ElectionPort, QuorumPort int
	Observer                 bool
	Membership               string // the content of the config node
	Text                     string // the whole configuration file at startup
}

// Pair is a key and its value.
type Pair struct{ Key, Value string }

// Sessions describes the sessions that the server knows.
type Sessions struct {
	Expiry     map[time.Time][]int64 // on the leader: sessions by expiry time
	IDs        []int64               // all ids, sorted
	Timeouts   []time.Duration       // of the sessions in IDs
	Ephemerals map[int64][]string
}

// WatchSummary counts the watches of the data list.
type WatchSummary struct{ Conns, Paths, Total int }

// Digest is the tree's digest at a zxid.
type Digest struct {
	Zxid   int64
	Digest uint64
}

// Metric is one line of mntr, without "zk_".
type Metric struct {
	Name, Value string
	Kind        MetricKind
	// Key distinguishes metrics with the same name, as in Summary.
	Key string
}

// Line is the metric's name in mntr, without "zk_".
func (m *Metric) Line() string {
	if m.Key == "" {
		return m.Name
	}
	return Plain(m.Key) + "_" + m.Name
}

// Plain returns a key as it appears in the name of a line. A blank or a newline would break
// the line, and some tools stop parsing mntr at the first name that contains anything
// except letters, digits and a few signs.
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

// MetricKind describes how a Metric changes.
type MetricKind uint8

// The kinds of metric.
const (
	Note    MetricKind = iota // text, or a number that only mntr shows
	Gauge                     // may go up and down
	Counter                   // goes up; srst resets it to 0
)

// Summary is the distribution of a quantity. Times are in milliseconds.
type Summary struct {
	Name, Key                string // Key distinguishes summaries with the same name: an id or a path; usually empty
	Basic                    bool   // mntr shows no percentiles
	Count                    int64
	Sum, Min, Max, Mean      float64 // over all values
	P50, P90, P95, P99, P999 float64 // over the last minutes
}

// MetricsPath is the path of the metrics on their port.
const MetricsPath = "/metrics"

// MetricsSource is a server that provides metrics.
type MetricsSource interface {
	Metrics() []Metric
	Summaries() []Summary
}
