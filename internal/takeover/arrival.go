package takeover

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/words"
)

// Arrival is how much of a snapshot has arrived. The ensemble's leader doesn't announce how long
// it is.
type Arrival struct {
	Bytes  int64 `json:"bytes"`
	Znodes int   `json:"znodes"`
	// Expected estimates how many znodes will arrive: one of the ensemble's servers had that
	// many when the snapshot began. 0: unknown.
	Expected int `json:"expectedZnodes"`
	// Complete says that the snapshot has arrived and is being written to the log.
	Complete bool `json:"complete"`
}

// logEvery is the number of bytes of a snapshot between two log messages about it.
const logEvery = 64 << 20

// arrived records how much of a snapshot has arrived, and begins to look for its size.
func (m *Mirror) arrived(bytes int64, znodes int, expect func()) {
	m.mu.Lock()
	if m.arrival == nil {
		m.arrival = new(Arrival)
		expect()
	}
	before := m.arrival.Bytes
	m.arrival.Bytes, m.arrival.Znodes = bytes, znodes
	a := *m.arrival
	m.mu.Unlock()
	switch {
	case m.cfg.Progress != nil:
		m.cfg.Progress(&a)
	case bytes/logEvery > before/logEvery:
		m.cfg.Logger.Info("receiving the ensemble's snapshot", "MiB", bytes>>20, "znodes", a.Znodes, "expected", a.Expected)
	}
}

// complete records that the state is exact. If it came as a snapshot, we write that to the log
// next.
func (m *Mirror) complete() {
	m.mu.Lock()
	if m.arrival == nil {
		m.mu.Unlock()
		return
	}
	m.arrival.Complete = true
	a := *m.arrival
	m.mu.Unlock()
	if m.cfg.Progress != nil {
		m.cfg.Progress(&a)
	}
	m.cfg.Logger.Info("received the ensemble's snapshot, writing it to the log", "MiB", a.Bytes>>20, "znodes", a.Znodes)
}

// settled records that no snapshot is arriving: it is in the log, or the connection has ended.
func (m *Mirror) settled() {
	m.mu.Lock()
	was := m.arrival
	m.arrival = nil
	m.mu.Unlock()
	if was != nil && m.cfg.Progress != nil {
		m.cfg.Progress(nil)
	}
}

// expectLimit is how long we wait for the ensemble's servers to report the number of znodes.
const expectLimit = 3 * time.Second

// defaultClientPort is the client port that we try if none is known.
const defaultClientPort = "2181"

// expect asks the ensemble's servers how many znodes there are. leader is the leader's quorum
// address: if no client address is known, we try the default port there. A server that answers must
// be in the leader's epoch, or it belongs to another ensemble. We ask srvr, because every server
// allows it by default, and because mntr doesn't show the epoch.
func (m *Mirror) expect(ctx context.Context, leader string, epoch int64) {
	ctx, cancel := context.WithTimeout(ctx, expectLimit)
	defer cancel()
	addrs := m.cfg.Old.ClientAddrs()
	if host, _, err := net.SplitHostPort(leader); err == nil && len(addrs) == 0 {
		addrs = append(addrs, net.JoinHostPort(host, defaultClientPort))
	}
	for _, addr := range addrs {
		text, err := words.Ask(ctx, m.cfg.Dial, addr, "srvr")
		if err != nil {
			continue
		}
		var znodes, zxid int64
		for name, value := range words.Fields(text, ": ") {
			switch name {
			case "Zxid":
				zxid, _ = strconv.ParseInt(strings.TrimPrefix(value, "0x"), 16, 64)
			case "Node count":
				znodes, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		if znodes > 1 && zxid>>32 == epoch {
			m.set(func() {
				if m.arrival != nil {
					m.arrival.Expected = int(znodes) - 1 // servers count the root twice
				}
			})
			return
		}
	}
}
