package raftfsm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/tree"
)

// TestClientAddressDoesNotFlip: without reconfig, the files of the servers may have
// different client addresses for one server. The address in the membership doesn't depend
// on which server leads. It is the one in that server's own file, if there is one.
func TestClientAddressDoesNotFlip(t *testing.T) {
	const server, own, others = 2, "0.0.0.0:2182", "0.0.0.0:2183"
	for name, files := range map[string]struct{ own, others string }{
		"only in its own file": {own: own},
		"only in other files":  {others: others},
		"two addresses":        {own, others},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, 3)
				c.startAll(func(cfg *Config) {
					cfg.Policy &^= tree.ReconfigEnabled
					cfg.Members = slices.Clone(cfg.Members)
					at := files.others
					if cfg.ID == server {
						at = files.own
					}
					cfg.Members[server-1].ClientAddr = at
				})
				c.awaitLevel(membership.NamedLevel)
				led := make(map[uint64]int)
				var texts []string // of the leaders since the server itself has led
				for len(texts) < 6 {
					id, r := c.leader()
					time.Sleep(time.Second)
					if led[id]++; led[server] > 0 {
						texts = append(texts, r.configText())
					}
					if err := r.peers.Transfer(t.Context()); err != nil {
						t.Fatal(err)
					}
					c.eventually("another leader", func() bool { _, next := c.leader(); return next != r })
				}
				if len(led) < 2 || led[server] == 0 {
					t.Fatalf("leaderships by server: %v", led)
				}
				if len(slices.Compact(slices.Clone(texts))) != 1 {
					t.Errorf("the membership changes with the leader: %q", texts)
				}
				if files.own != "" && !strings.Contains(texts[0], ";"+own) {
					t.Errorf("the address in the server's own file is missing: %q", texts[0])
				}
			})
		})
	}
}
