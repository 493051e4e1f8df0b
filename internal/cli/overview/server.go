package overview

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/words"
)

// Server is the state that one server reports.
type Server struct {
	Address string `json:"address"`
	// Error is the reason why the state is unknown or the server doesn't serve.
	Error string `json:"error,omitempty"`
	// Note is the reason why some of the state is unknown.
	Note string `json:"note,omitempty"`
	// Version is the software version.
	Version string `json:"version,omitempty"`
	// Mode is leader, follower, observer, standalone or read-only; "" if the server
	// doesn't serve.
	Mode string `json:"mode,omitempty"`
	Zxid *Zxid  `json:"zxid,omitempty"`
	// AnswerMillis is the time until the server's answer to the query.
	AnswerMillis float64 `json:"answerMillis"`
	// LatencyMin, LatencyAvg and LatencyMax are the latencies of client requests in
	// milliseconds, since the start or the last reset of the statistics.
	LatencyMin *float64 `json:"latencyMin,omitempty"`
	LatencyAvg *float64 `json:"latencyAvg,omitempty"`
	LatencyMax *float64 `json:"latencyMax,omitempty"`
	// Received and Sent count packets since the start.
	Received    *int64 `json:"received,omitempty"`
	Sent        *int64 `json:"sent,omitempty"`
	Connections *int64 `json:"connections,omitempty"`
	Outstanding *int64 `json:"outstanding,omitempty"`
	Znodes      *int64 `json:"znodes,omitempty"`
	// Only mntr and the AdminServer report the following fields.
	Watches    *int64 `json:"watches,omitempty"`
	Ephemerals *int64 `json:"ephemerals,omitempty"`
	DataBytes  *int64 `json:"dataBytes,omitempty"`
	OpenFiles  *int64 `json:"openFiles,omitempty"`
	UptimeMS   *int64 `json:"uptimeMillis,omitempty"`
	// Requests is the number of packets received per second, nil in the first sample.
	Requests *float64 `json:"requestsPerSecond,omitempty"`
}

// Zxid is a transaction id. We use a hexadecimal text form, because many JSON parsers lose
// digits of such large numbers.
type Zxid int64

// MarshalText implements encoding.TextMarshaler.
func (z Zxid) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "0x%x", uint64(z)), nil //nolint:gosec // all 64 bits are used
}

// srvr parses the answer to srvr.
func (s *Server) srvr(text string) {
	for key, value := range words.Fields(text, ": ") {
		switch key {
		case "Zookeeper version":
			s.Version = version(value)
		case "Latency min/avg/max":
			if part := strings.Split(value, "/"); len(part) == 3 {
				s.LatencyMin, s.LatencyAvg, s.LatencyMax = decimal(part[0]), decimal(part[1]), decimal(part[2])
			}
		case "Received":
			s.Received = whole(value)
		case "Sent":
			s.Sent = whole(value)
		case "Connections":
			s.Connections = whole(value)
		case "Outstanding":
			s.Outstanding = whole(value)
		case "Zxid":
			s.Zxid = (*Zxid)(whole(value))
		case "Mode":
			s.Mode = value
		case "Node count":
			s.Znodes = whole(value)
		}
	}
}

// monitor stores one value of mntr, with or without the prefix zk_.
func (s *Server) monitor(key, value string) {
	switch strings.TrimPrefix(key, "zk_") {
	case "version":
		s.Version = version(value)
	case "server_state":
		s.Mode = value
	case "min_latency":
		s.LatencyMin = decimal(value)
	case "avg_latency":
		s.LatencyAvg = decimal(value)
	case "max_latency":
		s.LatencyMax = decimal(value)
	case "packets_received":
		s.Received = whole(value)
	case "packets_sent":
		s.Sent = whole(value)
	case "num_alive_connections":
		s.Connections = whole(value)
	case "outstanding_requests":
		s.Outstanding = whole(value)
	case "znode_count":
		s.Znodes = whole(value)
	case "watch_count":
		s.Watches = whole(value)
	case "ephemerals_count":
		s.Ephemerals = whole(value)
	case "approximate_data_size":
		s.DataBytes = whole(value)
	case "open_file_descriptor_count":
		s.OpenFiles = whole(value)
	case "uptime":
		s.UptimeMS = whole(value)
	}
}

// version removes the build information.
func version(text string) string {
	text, _, _ = strings.Cut(text, ",")
	text = strings.TrimSuffix(text, "-unknown")
	if i := strings.LastIndexByte(text, '-'); i > 0 && len(text)-i > 30 {
		text = text[:i] // the commit hash
	}
	return text
}

func whole(text string) *int64 {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil {
			return nil
		}
		n = int64(f)
	}
	return &n
}

func decimal(text string) *float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &f
}
