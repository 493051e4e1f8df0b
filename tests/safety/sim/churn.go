package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// churn removes a server from the ensemble, or changes its role. It runs only
// when every server is up: a change that must wait for a missing server tests
// nothing but the wait.
func (n *nemesis) churn(observer bool, role string) bool {
	h := n.c.hosts[n.rnd.IntN(len(n.c.hosts))]
	if len(n.moved) > 0 || observer != (h.id > n.c.layout.Voters) || !n.c.await(3*time.Second, n.c.whole) {
		return false
	}
	n.moved = append(n.moved, h)
	var code proto.Code
	var err error
	if role == "" {
		n.say("%s is to leave the ensemble", h.name)
		code, err = n.reconfig("", fmt.Sprint(h.id))
	} else {
		n.say("%s is to be a %s", h.name, role)
		code, err = n.reconfig(line(h, role), "")
	}
	n.say("reconfig: %v, %v", code, err)
	if err != nil || code != proto.Ok {
		n.uncertain = time.Now()
	}
	return err == nil && code == proto.Ok
}

// settle brings back every server that was moved. The other servers are running
// and reachable by now. If the reply to a request was lost, the servers may still execute it later,
// so settle checks the list now, and again after the next faults are fixed.
func (n *nemesis) settle() {
	var left []*host
	for _, h := range n.moved {
		role := "participant"
		if h.id > n.c.layout.Voters {
			role = "observer"
		}
		for try := 0; try < 30 && !n.listed(h, role); try++ {
			code, err := n.reconfig(line(h, role), "")
			n.say("%s is to be a %s again: %v, %v", h.name, role, code, err)
			if err == nil && code == proto.Ok {
				n.c.note("reconfig: back in its place")
			} else {
				n.uncertain = time.Now()
				time.Sleep(time.Second)
			}
		}
		if !n.listed(h, role) || time.Since(n.uncertain) < inDoubt {
			left = append(left, h)
		}
	}
	n.moved = left
}

// inDoubt is how long the servers may still execute a request to change the ensemble after its
// client stopped waiting for the reply.
const inDoubt = 90 * time.Second

// settleAll waits until no server can be moved any more.
func (n *nemesis) settleAll() {
	for range 40 {
		if n.settle(); len(n.moved) == 0 {
			return
		}
		time.Sleep(5 * time.Second)
	}
}

// listed reports whether the leader's membership list has the server with that
// role.
func (n *nemesis) listed(h *host, role string) bool {
	lead := n.c.leader()
	if lead == nil {
		return false
	}
	node := lead.node()
	return node != nil && strings.Contains(string(node.Membership()), line(h, role))
}

// line is the server's line in the membership list.
func line(h *host, role string) string {
	return fmt.Sprintf("server.%d=%s:2888:3888:%s;0.0.0.0:2181", h.id, h.name, role)
}

// reconfig asks the leader, or any server that can be reached, to change the
// ensemble.
func (n *nemesis) reconfig(joining, leaving string) (proto.Code, error) {
	h := n.c.leader()
	if h == nil {
		return 0, fmt.Errorf("nobody leads")
	}
	p := h.up()
	if p == nil || p.srv == nil {
		return 0, fmt.Errorf("%s does not run", h.name)
	}
	code, err := reconfig(p, joining, leaving)
	n.c.note(fmt.Sprintf("reconfig: answered %v", code))
	return code, err
}
