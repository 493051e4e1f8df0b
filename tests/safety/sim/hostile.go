package sim

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/tests/safety/hostile"
)

// hostilePeer makes a process that is not a member attack a server: as a
// stranger, or with the ensemble's id, as found on a stolen disk. No such attack
// may change anything, so there is nothing to undo.
func (n *nemesis) hostilePeer() bool {
	h := n.running()
	if h == nil {
		return false
	}
	var id quorum.ClusterID
	if n.rnd.IntN(3) > 0 {
		var known struct {
			Cluster quorum.ClusterID `json:"cluster"`
		}
		data, err := vfs.ReadFile(h.up().vol, "/log/identity.json")
		if err != nil || json.Unmarshal(data, &known) != nil {
			return false
		}
		id = known.Cluster
	}
	n.hostiles++
	host := fmt.Sprintf("x%d", n.hostiles)
	p, err := hostile.New(n.c.net.Host(host), host+":1", "9.9", id, n.rnd)
	if err != nil {
		return false
	}
	defer p.Close()
	for range 1 + n.rnd.IntN(8) {
		n.say("a hostile process sends %s %s", h.name, p.Attack(context.Background(), h.name+":2888", fmt.Sprint(h.id)))
	}
	return true
}
