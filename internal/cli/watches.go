package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/client"
)

// watchCommands returns the commands that set and remove watches.
func watchCommands() []Command {
	return []Command{
		{
			Name: "addWatch", Short: "add a persistent watch to a znode", Least: 1, Most: 1, Run: addWatch,
			Usage:   "[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE",
			Options: []Option{{Name: "m", Arg: "mode", Help: "PERSISTENT or PERSISTENT_RECURSIVE"}},
		},
		{
			Name: "removewatches", Usage: "path [-c|-d|-a] [-l]", Short: "remove watches of a znode", Least: 1, Most: 1, Run: removeWatches,
			Options: []Option{
				{Name: "c", Help: "child watcher type"}, {Name: "d", Help: "data watcher type"},
				{Name: "p", Help: "persistent watcher type"}, {Name: "r", Help: "persistent recursive watcher type"},
				{Name: "a", Help: "any watcher type"}, {Name: "l", Help: "remove locally when there is no server connection"},
			},
		},
	}
}

// watchType is the type of a watch.
type watchType string

// The types, named by the option that removes them.
const (
	dataWatch       watchType = "d"
	childWatch      watchType = "c"
	persistentWatch watchType = "p"
	recursiveWatch  watchType = "r"
)

// removed returns the event for the removal of a watch.
func (t watchType) removed() string {
	switch t {
	case dataWatch:
		return "DataWatchRemoved"
	case childWatch:
		return "ChildWatchRemoved"
	}
	return "PersistentWatchRemoved"
}

// watch is a watch set by this shell.
type watch struct {
	kind watchType
	path string
	on   *client.Watch
}

// remember stores a watch for removewatches.
func (s *Shell) remember(kind watchType, path string, w *client.Watch) {
	s.watches = append(slices.DeleteFunc(s.watches, watch.ended), watch{kind, path, w})
}

// ended reports whether a watch has ended. It may drain the watch's channel, because
// the shell reports events when the client receives them.
func (w watch) ended() bool {
	for {
		select {
		case _, ok := <-w.on.Events():
			if !ok {
				return true
			}
		default:
			return false
		}
	}
}

// data, children and exists read a znode, and store the watch if wanted is true.
func (s *Shell) data(ctx context.Context, path string, wanted bool) ([]byte, client.Stat, error) {
	zk, err := s.client()
	if err != nil {
		return nil, client.Stat{}, err
	}
	if !wanted {
		return zk.Get(ctx, path)
	}
	data, stat, w, err := zk.GetW(ctx, path)
	if err == nil {
		s.remember(dataWatch, path, w)
	}
	return data, stat, err
}

func (s *Shell) children(ctx context.Context, path string, wanted bool) ([]string, client.Stat, error) {
	zk, err := s.client()
	if err != nil {
		return nil, client.Stat{}, err
	}
	if !wanted {
		return zk.Children(ctx, path)
	}
	names, stat, w, err := zk.ChildrenW(ctx, path)
	if err == nil {
		s.remember(childWatch, path, w)
	}
	return names, stat, err
}

func (s *Shell) exists(ctx context.Context, path string, wanted bool) (client.Stat, bool, error) {
	zk, err := s.client()
	if err != nil {
		return client.Stat{}, false, err
	}
	if !wanted {
		return zk.Exists(ctx, path)
	}
	stat, found, w, err := zk.ExistsW(ctx, path)
	if err == nil {
		s.remember(dataWatch, path, w)
	}
	return stat, found, err
}

func addWatch(ctx context.Context, c *Call) error {
	zk, err := c.Client()
	if err != nil {
		return err
	}
	path := c.Args[0]
	kind, set := recursiveWatch, zk.WatchRecursive
	switch mode := strings.ToUpper(c.Value("m")); {
	case mode == "PERSISTENT":
		kind, set = persistentWatch, zk.WatchPersistent
	case c.Has("m") && mode != "PERSISTENT_RECURSIVE":
		return c.UsageError()
	}
	w, err := set(ctx, path)
	if err == nil {
		c.shell.remember(kind, path, w)
	}
	return err
}

func removeWatches(ctx context.Context, c *Call) error {
	path := c.Args[0]
	if err := checkPath(path); err != nil {
		return err
	}
	wanted := []watchType{dataWatch, childWatch, persistentWatch, recursiveWatch}
	for _, kind := range wanted {
		if c.Has(string(kind)) && !c.Has("a") {
			wanted = []watchType{kind}
			break
		}
	}
	c.shell.watches = slices.DeleteFunc(c.shell.watches, watch.ended)
	var found []watchType
	for _, w := range c.shell.watches {
		if w.path != path || !slices.Contains(wanted, w.kind) {
			continue
		}
		if err := w.on.Remove(ctx); err != nil && !c.Has("l") {
			return err
		}
		if !slices.Contains(found, w.kind) {
			found = append(found, w.kind)
			c.shell.events.tell(event{State: "SyncConnected", Type: w.kind.removed(), Path: path, Zxid: -1})
		}
	}
	c.shell.watches = slices.DeleteFunc(c.shell.watches, watch.ended)
	if len(found) == 0 {
		return &client.Error{Op: "removeWatches", Path: path, Code: client.ErrNoWatcher}
	}
	return nil
}
