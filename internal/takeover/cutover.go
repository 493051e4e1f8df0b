package takeover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirror"
	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
)

// CutoverOptions configure a cutover.
type CutoverOptions struct {
	DryRun bool `json:"dryRun"` // check everything, change nothing
	// Force continues despite findings that block.
	Force bool `json:"force"`
	// FenceCommand closes the client ports of one old server (mirror.Hook). If it is empty, the
	// operator closes them while we wait.
	FenceCommand string `json:"fenceCommand"`
	// FenceTimeout limits the time until no old server answers; default 1 min.
	FenceTimeout time.Duration `json:"fenceTimeout"`
	// Proxies are client addresses that belong to a proxy (mirror.Fence).
	Proxies []string `json:"proxies"`
	// LogCommand prints the newest transaction in the log of one old server
	// (mirror.CheckLogs). It replaces the proof that the old leader gives while it runs, for a
	// FenceCommand that stops the servers.
	LogCommand string `json:"logCommand"`
	// LastZxid is the newest zxid in the logs of the old servers, which the operator has looked up
	// after stopping every server. It replaces both proofs; 0: we need a proof.
	LastZxid int64 `json:"lastZxid"`
	// AcceptLost replaces servers that have failed permanently, with the mirror's state. We lose
	// all later transactions that they have committed.
	AcceptLost bool `json:"acceptLost"`
}

// CutoverReport describes the findings and steps of a cutover.
type CutoverReport struct {
	Findings mirror.Findings `json:"findings"`
	Done     bool            `json:"done"` // these servers have taken over
	// NextEpoch is the epoch that begins with the cutover.
	NextEpoch int64 `json:"nextEpoch"`
	Zxid      int64 `json:"zxid,omitempty"` // the old ensemble's newest transaction
	// Fence is the time until no old server answered, Proof the time until the newest transaction
	// was proved, and Switch the time until these servers served. In nanoseconds.
	Fence  time.Duration `json:"fenceNanos"`
	Proof  time.Duration `json:"proofNanos"`
	Switch time.Duration `json:"switchNanos"`
}

// proofLimit is how long we wait for the old leader to prove its newest transaction.
const proofLimit = 15 * time.Second

// applyLimit is how long we wait until the newest transaction is applied here.
const applyLimit = 30 * time.Second

// Cutover takes over from the ensemble. An error leaves both sides unchanged, unless the command
// for it is in the log already. step receives progress messages.
func (m *Mirror) Cutover(ctx context.Context, n *raftfsm.Node, o CutoverOptions, step func(string)) (r CutoverReport, err error) {
	release, err := m.beginCutover(n, o)
	if err != nil {
		return r, err
	}
	defer release()
	_, _, zxid := n.Mirroring().State()
	r.NextEpoch = zxid>>32 + 1
	if err := m.addMembers(n); err != nil {
		return r, err
	}
	if r.Findings = m.preflight(ctx, n, o); r.Findings.Blocked() && !o.Force {
		return r, errors.New("nothing was changed: checks have failed (to continue anyway, use --ignore-findings)")
	}
	if o.DryRun {
		return r, nil
	}
	if err := m.fence(ctx, o, &r, step); err != nil {
		return r, fmt.Errorf("nothing was changed; open the old client ports again if you closed them: %w", err)
	}
	began := time.Now()
	if r.Zxid, err = m.prove(ctx, n, o); err != nil {
		return r, fmt.Errorf("nothing was changed; open the old client ports again: %w", err)
	}
	r.Proof = time.Since(began)
	step(fmt.Sprintf("the newest transaction of the old ensemble is 0x%x; taking over", r.Zxid))
	began = time.Now()
	if err := n.Mirroring().End(ctx, r.Zxid); err != nil {
		return r, err
	}
	r.Done, r.Switch = true, time.Since(began)
	return r, nil
}

// beginCutover checks that this server can take over, and keeps the connection to the ensemble
// from being replaced until release.
func (m *Mirror) beginCutover(n *raftfsm.Node, o CutoverOptions) (release func(), err error) {
	state, _, _ := n.Mirroring().State()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case state.Phase != mirrored.Following:
		return nil, fmt.Errorf("there is nothing to take over: the mirror is in phase %v", state.Phase)
	case state.Broken != "":
		return nil, fmt.Errorf("the mirror is broken: %s", state.Broken)
	case m.cfg.Old == nil:
		return nil, errors.New("this server does not follow the ensemble: it was started with zkgo server; start zkgo mirror instead")
	case m.to == nil:
		return nil, fmt.Errorf("server %d leads, not this one: run the command there", n.Status().Leader)
	case o.AcceptLost && m.conn != nil:
		return nil, errors.New("the ensemble is not lost: there is a connection to it, so its newest transaction can be proved; leave out --accept-lost")
	case o.AcceptLost && o.LastZxid != 0:
		return nil, errors.New("use either --last-zxid, if the newest transaction is known, or --accept-lost, to give up missing transactions")
	case m.source == mirrored.Mirror && m.conn != nil:
		return nil, errors.New("the server that is followed here is itself a mirror, and can't prove what its own ensemble has committed last: take over there first (zkgo mirror cutover), or start this server with --from its ensemble")
	case m.cutting != nil:
		return nil, errors.New("another cutover is under way")
	}
	ended := make(chan struct{})
	m.cutting = ended
	return func() {
		m.set(func() { m.cutting = nil })
		close(ended)
	}, nil
}

// addMembers completes the operator's description of the ensemble with its list of servers, which
// is also in the state.
func (m *Mirror) addMembers(n *raftfsm.Node) error {
	t := n.Tree()
	t.RLock()
	text := string(t.Get(tree.ConfigPath).Data())
	t.RUnlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.old = &mirror.Old{Servers: slices.Clone(m.cfg.Old.Servers), Settings: m.cfg.Old.Settings}
	if m.conn != nil && m.conn.Members() != "" {
		text = m.conn.Members()
	}
	if err := m.old.AddMembers(text); err != nil {
		return err
	}
	if m.source != mirrored.ZooKeeper {
		m.old.ForgetStreams(m.source == mirrored.Mirror)
	}
	return nil
}

// preflight looks at the old ensemble from outside.
func (m *Mirror) preflight(ctx context.Context, n *raftfsm.Node, o CutoverOptions) mirror.Findings {
	s := m.StatusOf(n)
	p := mirror.Preflight{
		Old: m.old,
		Mirror: mirror.Status{
			Exact: s.Broken == "", Zxid: s.Zxid, Proposed: s.Proposed, Heard: m.cfg.Wall().Add(-time.Duration(s.LagMillis) * time.Millisecond),
			Compared: s.Compared,
		},
		Zkgo: m.source != mirrored.ZooKeeper, TLS: m.cfg.Learner.TLS,
		ACLs: func(yield func(string, []proto.ACL) bool) { lists(n, yield) },
	}
	found := p.Check(ctx)
	if o.AcceptLost {
		found = found.Lost()
	}
	if m.source == mirrored.Mirror { // and there is no connection to it
		found = append(found, mirror.Finding{
			Severity: mirror.Blocks, Check: "source", Text: "the server that was followed is itself a mirror, and its own ensemble may still serve clients",
			Do: "start this server with --from that ensemble; if that is lost too, make sure that no client reaches it, and use --ignore-findings",
		})
	}
	if o.AcceptLost {
		return append(found, mirror.Finding{
			Severity: mirror.Warns, Check: "lost", Text: fmt.Sprintf("transactions that the ensemble committed after zxid 0x%x are lost; the newest one that it announced is 0x%x", s.Zxid, max(s.Zxid, s.Proposed)),
			Do: "make sure that no old server can start again where clients reach it",
		})
	}
	if m.current() == nil && o.LastZxid == 0 && o.LogCommand == "" {
		found = append(found, mirror.Finding{
			Severity: mirror.Blocks, Check: "connection", Text: "there is no connection to the old leader: " + s.Problem,
			Do: "wait until there is one; if all old servers are stopped permanently, use --log-command, a command that prints the newest zxid of their logs, or --last-zxid; if they are lost, use --accept-lost",
		})
	}
	return found
}

// lists yields the access control list of each znode.
func lists(n *raftfsm.Node, yield func(string, []proto.ACL) bool) {
	t := n.Tree()
	t.Lock()
	snap := t.Snapshot()
	t.Unlock()
	defer snap.Release()
	nodes, err := snap.Stored()
	if err != nil {
		return
	}
	for z := range nodes {
		if !yield(z.Path, z.ACL) {
			return
		}
	}
}

// current returns the connection to the ensemble's leader, nil if there is none.
func (m *Mirror) current() *learner.Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.conn
}

// fence has the old client ports closed, or waits until the operator has closed them.
func (m *Mirror) fence(ctx context.Context, o CutoverOptions, r *CutoverReport, step func(string)) error {
	if o.FenceTimeout <= 0 {
		o.FenceTimeout = time.Minute
	}
	f := &mirror.Fence{Addrs: m.old.ClientAddrs(), Proxies: o.Proxies}
	if err := f.Arm(ctx); err != nil {
		return err
	}
	defer f.Disarm()
	began := time.Now()
	if o.FenceCommand != "" {
		step("closing the client ports of the old servers")
		if err := (mirror.Hook{Command: o.FenceCommand, Timeout: o.FenceTimeout}).Run(ctx, m.old.Servers); err != nil {
			return err
		}
	} else {
		step(fmt.Sprintf("close the client ports of all old servers now, e.g. with a firewall; waiting up to %v until none of %v answers", o.FenceTimeout, f.Addrs))
	}
	waiting, cancel := context.WithTimeout(ctx, o.FenceTimeout)
	defer cancel()
	if err := f.Closed(waiting); err != nil {
		return err
	}
	r.Fence = time.Since(began)
	step("no old server answers clients any more")
	if names := f.Unverified(); len(names) > 0 {
		step(fmt.Sprintf("cannot see whether %v still serve clients that were already connected", names))
	}
	return nil
}

// barrierSession is the session of the request that proves the newest transaction.
const barrierSession = mirrored.Sessions<<56 | 1

// prove returns the zxid of the old ensemble's newest transaction once it is applied here.
func (m *Mirror) prove(ctx context.Context, n *raftfsm.Node, o CutoverOptions) (zxid int64, err error) {
	if o.AcceptLost {
		_, _, zxid := n.Mirroring().State()
		return zxid, nil
	}
	if o.LastZxid != 0 {
		if err := applied(ctx, n, o.LastZxid); err != nil {
			return 0, err
		}
		if _, _, zxid := n.Mirroring().State(); zxid != o.LastZxid {
			return 0, fmt.Errorf("the mirror is at zxid 0x%x, and --last-zxid says 0x%x: look at the logs of all old servers again", zxid, o.LastZxid)
		}
		return o.LastZxid, nil
	}
	if o.LogCommand != "" {
		_, _, zxid := n.Mirroring().State()
		return zxid, mirror.CheckLogs(ctx, mirror.Hook{Command: o.LogCommand}, m.old, zxid)
	}
	m.mu.Lock()
	conn, last, gone := m.conn, m.last, m.gone
	m.mu.Unlock()
	if conn == nil {
		return 0, errors.New("there is no connection to the old leader that could prove its newest transaction (--log-command, --last-zxid)")
	}
	ctx, cancel := context.WithTimeout(ctx, proofLimit)
	defer cancel()
	stop := context.AfterFunc(gone, cancel)
	defer stop()
	if zxid, err = last.Prove(ctx, conn, barrierSession); err != nil {
		return 0, err
	}
	return zxid, applied(context.WithoutCancel(ctx), n, zxid)
}

// applied waits until a transaction is applied here.
func applied(ctx context.Context, n *raftfsm.Node, zxid int64) error {
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	for {
		state, _, have := n.Mirroring().State()
		switch {
		case state.Broken != "":
			return errors.New(state.Broken)
		case have >= zxid:
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("transaction 0x%x has not been applied here (the newest one is 0x%x): %w", zxid, have, ctx.Err())
		}
	}
}

// cutover serves a cutover. Its answer is a line for each step, and the report.
func (c *control) cutover(w http.ResponseWriter, r *http.Request) {
	var o CutoverOptions
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&o); err != nil {
		c.reply(w, nil, err)
		return
	}
	lines := json.NewEncoder(w)
	report, err := c.m.Cutover(r.Context(), c.n, o, func(text string) {
		c.m.cfg.Logger.Info("cutover: " + text)
		_ = lines.Encode(answer{Step: text}) // the caller may have left, which ends the context
		_ = http.NewResponseController(w).Flush()
	})
	c.reply(w, report, err)
}

// Cutover asks the server to take over. step receives progress messages.
func (c *Client) Cutover(ctx context.Context, o CutoverOptions, step func(string)) (r CutoverReport, err error) {
	err = c.do(ctx, http.MethodPost, "cutover", o, &r, step)
	return r, err
}
