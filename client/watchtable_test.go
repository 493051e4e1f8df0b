package client

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// TestWatchAnsweredWhileTheSessionIsLost ends a session after the reply to a request that
// sets a watch was read, but before the watch is in the table. This can happen to a process
// that was stopped for longer than its session timeout. The watch should end.
func TestWatchAnsweredWhileTheSessionIsLost(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]kind{"data": kindData, "child": kindChild, "persistent": kindPersistent} {
		c, l := &core{}, &link{}
		table := &watchTable{core: c, paths: make(map[string]*watchedPath)}
		c.link = l
		w := &Watch{core: c, path: "/a", kind: kind, ch: make(chan Event, 1)}
		k := &call{op: proto.OpGetData, watcher: w, taken: true}
		table.arming(k)
		table.endAll(ErrSessionExpired) // like core.lose
		c.link = nil
		table.armed(k, l)
		select {
		case _, ok := <-w.Events():
			if ok || w.Err() != ErrSessionExpired { //nolint:errorlint // exactly this error
				t.Errorf("%s: an event: %v; the reason is %v", name, ok, w.Err())
			}
		default:
			t.Errorf("%s: the watch continues and never ends", name)
		}
		if len(table.paths) != 0 {
			t.Errorf("%s: the table still has it: %v", name, table.paths)
		}
	}
}
