package transport

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// instance is shared by the parts of a Transport. It has the configuration, and signals
// the end of the Raft instance that the Transport serves.
//
// Invariant: no goroutine starts after Close has started to wait. Otherwise it could pass
// a message to this instance when the next one already owns the state.
type instance struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu sync.Mutex // held while a goroutine starts, and while Close forbids new ones
	wg sync.WaitGroup
}

func newInstance(cfg Config) *instance {
	i := &instance{cfg: cfg.orDefaults()}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	return i
}

func (i *instance) closed() bool { return i.ctx.Err() != nil }

// end forbids more goroutines and tells the others to end.
func (i *instance) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cancel()
}

// spawn runs f on a goroutine that Close waits for. It returns false, without running f,
// when the transport is closed.
func (i *instance) spawn(f func()) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed() {
		return false
	}
	i.wg.Go(f)
	return true
}

// pause sleeps for d. It returns false if the transport was closed.
func (i *instance) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-i.ctx.Done():
		return false
	}
}

// timeoutNow returns a request that asks another server to start an election immediately.
func (i *instance) timeoutNow() *raft.TimeoutNowRequest {
	id := []byte(i.cfg.ID)
	return &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: id, Addr: id}}
}
