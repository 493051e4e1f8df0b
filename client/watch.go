package client

import (
	"context"
	"errors"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// ErrWatchRemoved is the reason of a watch that ended by Remove.
var ErrWatchRemoved = errors.New("watch removed")

// watchBuffer is how many events wait for the reader of a persistent watch.
const watchBuffer = 256

// kind is what a watch is for.
type kind uint8

const (
	kindData       kind = iota // of an existing znode: from Get and Exists
	kindExist                  // of one that does not exist
	kindChild                  // of its children
	kindPersistent             // of data and children, until removed
	kindRecursive              // of all below, until removed
	kinds
)

// Watch is a watch on a znode. It is safe for concurrent use.
//
// It outlives the connection: the Client sets it again on the next one, and the
// server then tells at once what a one-shot watch has missed; a persistent one
// gets [EventResync]. It ends with the session, with [Client.Close], with
// Remove, and if it is one-shot with its event: the channel is closed then, and
// Err says why.
type Watch struct {
	core   *core
	prefix string // of the Client that made it
	path   string // as the server knows it
	kind   kind   // decided when the answer comes
	ch     chan Event

	// guarded by core.mu
	over bool
	err  error
}

// Events returns the channel of events: one for a one-shot watch, any number
// for a persistent one. An event is in the channel before the answer to any
// later request of this Client is delivered. The channel of a persistent watch
// holds 256 events; for a reader that is further behind they are replaced by one
// [EventResync].
func (w *Watch) Events() <-chan Event { return w.ch }

// Path returns what is watched, as the Client that set the watch sees it.
func (w *Watch) Path() string { return stripPrefix(w.path, w.prefix) }

// Err returns why the channel was closed: nil for a watch that goes on and for a
// one-shot watch that got its event, otherwise [ErrWatchRemoved],
// [ErrSessionExpired] or [ErrClosed].
func (w *Watch) Err() error {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	return w.err
}

// Remove ends the watch and, if no other of this Client needs it, takes the
// server's away. The watch has ended when it returns, whatever the error: that
// says only that the server could not be asked. Without a connection there is
// nothing to ask, and while a request that sets a watch on the same path is under
// way the server is asked after its reply, for which Remove does not wait. A watch
// that has ended already is no error.
func (w *Watch) Remove(ctx context.Context) error {
	c := w.core
	c.mu.Lock()
	k := c.watches.remove(w)
	c.mu.Unlock()
	if k == nil {
		return nil
	}
	select {
	case <-k.ready:
	case <-ctx.Done():
		if c.abandon(k) {
			return &Error{Op: proto.OpRemoveWatches.String(), Path: w.Path(), Err: context.Cause(ctx)}
		}
		<-k.ready
	}
	defer c.free(k)
	// With the connection the server's watch has gone as well. Another refusal
	// than NoWatcher is that of an old server that cannot tell watches apart.
	return nil
}

// Check asks the server whether it keeps the watch. A watch that has ended is not
// asked about.
func (w *Watch) Check(ctx context.Context) (bool, error) {
	c := w.core
	c.mu.Lock()
	over, typ := w.over, [...]proto.WatcherType{
		proto.WatcherData, proto.WatcherData, proto.WatcherChildren, proto.WatcherPersistent, proto.WatcherPersistentRecursive,
	}[w.kind]
	c.mu.Unlock()
	if over {
		return false, nil
	}
	view := &Client{core: c, prefix: w.prefix, retry: c.cfg.retry}
	err := view.finish(view.perform(ctx, request{op: proto.OpCheckWatches, path: w.Path(), num: int32(typ), safe: true}))
	if errors.Is(err, ErrNoWatcher) {
		return false, nil
	}
	return err == nil, err
}

// deliver puts an event into the channel; core.mu is held, so that nobody else
// sends.
func (w *Watch) deliver(e Event) {
	e.Path = stripPrefix(e.Path, w.prefix)
	select {
	case w.ch <- e:
		return
	default:
	}
	for range cap(w.ch) {
		select {
		case <-w.ch:
		default:
		}
	}
	w.ch <- Event{Type: EventResync, Path: w.Path(), Zxid: -1}
}

// end closes the channel; core.mu is held.
func (w *Watch) end(err error) {
	if !w.over {
		w.over, w.err = true, err
		close(w.ch)
	}
}

// newWatch returns a watch that is to be armed by a call on path.
func (c *Client) newWatch(path string, k kind) *Watch {
	size := 1
	if k >= kindPersistent {
		size = watchBuffer
	}
	return &Watch{core: c.core, prefix: c.prefix, path: joinPath(c.prefix, path), kind: k, ch: make(chan Event, size)}
}

func stripPrefix(path, prefix string) string {
	rest, ok := strings.CutPrefix(path, prefix)
	if ok && rest == "" {
		return "/"
	}
	return rest
}

// addWatch sets a persistent watch.
func (c *Client) addWatch(ctx context.Context, path string, k kind, mode proto.AddWatchMode) (*Watch, error) {
	call, err := c.perform(ctx, request{op: proto.OpAddWatch, path: path, num: int32(mode), watch: true, kind: k, safe: true})
	if err != nil {
		return nil, err
	}
	defer c.core.free(call)
	return call.watcher, nil
}

// drop ends a watch that nobody will get to see.
func (c *core) drop(w *Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches.abandonSweep(c.watches.remove(w))
}

// WatchPersistent watches the data and the children of the znode at path, which
// need not exist, until the watch is removed. Servers have it since ZooKeeper
// 3.6; before 3.9 a one-shot watch on the same path replaces it.
func (c *Client) WatchPersistent(ctx context.Context, path string) (*Watch, error) {
	return c.addWatch(ctx, path, kindPersistent, proto.AddWatchPersistent)
}

// WatchRecursive watches the znode at path, which need not exist, and all below
// it, until the watch is removed. It gets no EventNodeChildrenChanged: the
// children's own events say it all. Servers have it since ZooKeeper 3.6; before
// 3.9 a one-shot watch on the same path replaces it.
func (c *Client) WatchRecursive(ctx context.Context, path string) (*Watch, error) {
	return c.addWatch(ctx, path, kindRecursive, proto.AddWatchPersistentRecursive)
}
