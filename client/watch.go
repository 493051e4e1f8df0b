package client

import (
	"context"
	"errors"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// ErrWatchRemoved is the error of a watch that Remove ended.
var ErrWatchRemoved = errors.New("watch removed")

// watchBuffer is the capacity of the channel of a persistent watch.
const watchBuffer = 256

// kind is the kind of a watch.
type kind uint8

const (
	kindData       kind = iota // data of an existing znode: from Get and Exists
	kindExist                  // creation of a missing znode: from Exists
	kindChild                  // children of a znode
	kindPersistent             // data and children, until removed
	kindRecursive              // a znode and everything below it, until removed
	kinds
)

// Watch is a watch on a znode. It is safe for concurrent use.
//
// It outlives the connection: the Client sets it again on the next one. The server then
// immediately sends the event that a one-shot watch has missed, and a persistent one gets
// [EventResync]. A watch ends with the session, with [Client.Close], with Remove, and, if
// it is one-shot, with its event. The Client then closes the channel, and Err returns the
// reason.
type Watch struct {
	core   *core
	prefix string // chroot and namespace of the Client that made it
	path   string // as the server sees it
	kind   kind   // final when the reply arrives
	ch     chan Event

	// guarded by core.mu
	over bool
	err  error
}

// Events returns the channel of events: one event for a one-shot watch, any number for a
// persistent one. An event is in the channel before any later request of this Client gets
// its reply. The channel of a persistent watch has room for 256 events. If it is full, the
// Client replaces these events with a single [EventResync].
func (w *Watch) Events() <-chan Event { return w.ch }

// Path returns the watched path, as the Client that set the watch sees it.
func (w *Watch) Path() string { return stripPrefix(w.path, w.prefix) }

// Err returns why the channel was closed. It returns nil for a watch that continues and
// for a one-shot watch that got its event, and otherwise [ErrWatchRemoved],
// [ErrSessionExpired] or [ErrClosed].
func (w *Watch) Err() error {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	return w.err
}

// Remove ends the watch. If no other watch of this Client needs the server's watch, Remove
// also removes that one. When Remove returns, the watch has ended, even if there was an
// error: an error only means that ctx ended before the server replied. Without a
// connection, Remove sends no request. While a request that sets a watch on the same path
// is in flight, we postpone the removal until its reply arrives, and Remove doesn't wait
// for that. Removing a watch that has already ended is not an error.
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
	// If the connection broke, the server's watch is gone too. Any refusal except NoWatcher
	// comes from an old server that can't tell watches apart, so we ignore it.
	return nil
}

// Check asks the server whether it has the watch. For a watch that has ended, it
// returns false without asking.
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

// deliver puts an event into the channel. The caller holds core.mu, so no other
// goroutine sends.
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

// end closes the channel. The caller holds core.mu.
func (w *Watch) end(err error) {
	if !w.over {
		w.over, w.err = true, err
		close(w.ch)
	}
}

// newWatch returns a watch that a call on path will arm.
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

// drop ends a watch that the caller never gets.
func (c *core) drop(w *Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches.abandonSweep(c.watches.remove(w))
}

// WatchPersistent watches the data and the children of the znode at path, which need
// not exist, until the watch is removed. Servers support it since ZooKeeper 3.6.
// Before 3.9, a one-shot watch on the same path replaces it.
func (c *Client) WatchPersistent(ctx context.Context, path string) (*Watch, error) {
	return c.addWatch(ctx, path, kindPersistent, proto.AddWatchPersistent)
}

// WatchRecursive watches the znode at path, which need not exist, and everything
// below it, until the watch is removed. It gets no EventNodeChildrenChanged, because
// the children's own events carry the same information. Servers support it since
// ZooKeeper 3.6. Before 3.9, a one-shot watch on the same path replaces it.
func (c *Client) WatchRecursive(ctx context.Context, path string) (*Watch, error) {
	return c.addWatch(ctx, path, kindRecursive, proto.AddWatchPersistentRecursive)
}
