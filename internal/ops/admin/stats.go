package admin

import (
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/internal/ops/status"
)

func compareTimes(a, b time.Time) int { return a.Compare(b) }

// versioned returns the directory in which ZooKeeper would keep its files; tools
// expect that name.
func versioned(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Join(dir, "version-2")
}

func configuration(src Source) object {
	c := src.Configuration()
	o := object{{"client_port", c.ClientPort}}
	if c.SecureClientPort >= 0 {
		o = o.with("secure_client_port", c.SecureClientPort)
	}
	return append(o, object{
		{"data_dir", versioned(c.DataDir)}, {"data_log_dir", versioned(c.LogDir)},
		{"tick_time", c.TickTime.Milliseconds()}, {"max_client_cnxns", c.MaxClientCnxns},
		{"min_session_timeout", c.MinSessionTimeout.Milliseconds()}, {"max_session_timeout", c.MaxSessionTimeout.Milliseconds()},
		{"server_id", c.ServerID}, {"client_port_listen_backlog", c.ListenBacklog},
	}...)
}

func initialConfiguration(src Source) object {
	if text := src.Configuration().Text; text != "" {
		return object{{"initial_configuration", text}}
	}
	return object{{"initial_configuration", nil}}
}

func connections(src Source) object { return connectionLists(src, false) }

// connectionLists lists the connections. With brief, it omits their sessions.
func connectionLists(src Source, brief bool) object {
	plain, secure := []object{}, []object{}
	for _, c := range src.Conns() {
		if c.Secure {
			secure = append(secure, connection(&c, brief))
		} else {
			plain = append(plain, connection(&c, brief))
		}
	}
	return object{{"connections", plain}, {"secure_connections", secure}}
}

func connection(c *status.Conn, brief bool) object {
	o := object{
		{"remote_socket_address", c.Addr}, {"interest_ops", c.Interest}, {"outstanding_requests", c.Queued},
		{"packets_received", c.Received}, {"packets_sent", c.Sent},
	}
	if brief {
		return o
	}
	return append(o, object{
		{"session_id", c.SessionID}, {"last_operation", c.LastOp}, {"established", c.Established.UnixMilli()},
		{"session_timeout", c.Timeout.Milliseconds()}, {"last_cxid", c.LastCxid}, {"last_zxid", c.LastZxid},
		{"last_response_time", c.LastResponse.Milliseconds()}, {"last_latency", c.LastLatency},
		{"min_latency", c.MinLatency}, {"avg_latency", c.AvgLatency}, {"max_latency", c.MaxLatency},
	}...)
}

// sizes returns the three sizes that ZooKeeper reports for a kind of buffer.
func sizes(last, least, most int64) object {
	return object{{"last_buffer_size", last}, {"min_buffer_size", least}, {"max_buffer_size", most}}
}

func serverStats(src Source) object {
	s := src.Server()
	replies := sizes(s.LastReply, s.MinReply, s.MaxReply)
	data, log := src.Dirs()
	o := object{
		{"version", s.Version}, {"read_only", s.ReadOnly},
		{"server_stats", object{
			{"packets_sent", s.Sent}, {"packets_received", s.Received},
			{"fsync_threshold_exceed_count", 0}, {"client_response_stats", replies},
			{"provider_null", false}, {"server_state", s.Mode},
			{"outstanding_requests", s.Outstanding}, {"min_latency", s.LatencyMin},
			{"avg_latency", json.Number(fourletter.Float(s.LatencyAvg))}, {"max_latency", s.LatencyMax},
			{"data_dir_size", data}, {"log_dir_size", log}, {"last_processed_zxid", s.Zxid},
			{"num_alive_client_connections", s.Connections}, {"uptime", s.Uptime.Milliseconds()},
			{"auth_failed_count", s.AuthFailed}, {"non_mtlsremote_conn_count", 0}, {"non_mtlslocal_conn_count", 0},
		}},
		{"client_response", replies},
	}
	if s.Leads {
		o = o.with("proposal_stats", sizes(s.LastProposal, s.MinProposal, s.MaxProposal))
	}
	return o.with("node_count", s.Nodes)
}

func stats(src Source) object { return append(serverStats(src), connectionLists(src, true)...) }
