package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	"github.com/zkgo/zkgo/tests/kit/history"
)

// digestKey identifies a digest by server and zxid.
type digestKey struct {
	server int
	zxid   int64
}

// noteDigests records the tree digests that the servers report, now and then:
// each server keeps a digest for every 128th transaction since it was started.
func (r *run) noteDigests() {
	for _, m := range r.c.Members {
		all, err := m.Digests()
		if err != nil {
			r.trace.Printf("digests of server %d: %v", m.ID, err)
			continue
		}
		for zxid, digest := range all {
			if key := (digestKey{m.ID, zxid}); !r.digests[key] {
				r.digests[key] = true
				r.rec.State(&history.State{Server: m.ID, At: r.rec.Now(), Zxid: zxid, Digest: digest})
			}
		}
	}
}

// Digests returns the digests that a server keeps, by zxid.
func (m *Member) Digests() (map[int64]string, error) {
	client := http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return m.dial(m.c.ports.admin) }}}
	resp, err := client.Get("http://" + addr(m.listens, m.c.ports.admin) + "/commands/hash")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Digests []struct {
			Zxid   int64 `json:"zxid"`
			Digest int64 `json:"digest"`
		} `json:"digests"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	all := make(map[int64]string)
	for _, d := range answer.Digests {
		all[d.Zxid] = fmt.Sprintf("%016x", uint64(d.Digest))
	}
	return all, nil
}
