package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/diagnose"
)

func watchTreeCommand() Command {
	return Command{
		Name:        "watch",
		Verb:        "watch path",
		Usage:       "[-data] [-n count] [-for duration] path",
		Short:       "show events of a znode and its descendants, until interrupted",
		ListOptions: true,
		Options: []Option{
			{Name: "data", Help: "also show the new data"},
			{Name: "n", Long: "count", Arg: "count", Help: "exit after this number of events"},
			{Name: "for", Arg: "duration", Help: "exit after this time, e.g. 30s"},
		},
		Least: 1,
		Most:  1,
		Run:   runWatch,
	}
}

// seen is the printed form of an event.
type seen struct {
	Time  string  `json:"time"`
	Event string  `json:"event"`
	Path  string  `json:"path"`
	Zxid  string  `json:"zxid,omitempty"`
	Data  *string `json:"data,omitempty"`
	// Version is the version of the data, which may be newer than the event.
	Version *int32 `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
}

func runWatch(ctx context.Context, c *Call) error {
	limit, err := c.whole("n", 1)
	if err != nil {
		return err
	}
	p, done, err := c.place(ctx, c.Args[0])
	if err != nil {
		return err
	}
	defer done()
	var timer <-chan time.Time
	if c.Has("for") {
		d, err := time.ParseDuration(c.Value("for"))
		if err != nil || d <= 0 {
			return misuse("-for %s: want a duration, e.g. 30s", c.Value("for"))
		}
		timer = time.After(d)
	}
	if root := strings.TrimSuffix(p.Root, "/"); p.Client == c.shell.zk {
		c.shell.events.mute(func(path string) bool { return path == p.Root || strings.HasPrefix(path, root+"/") })
		defer c.shell.events.mute(nil)
	}
	w, err := p.Client.WatchRecursive(ctx, p.Root)
	if errors.Is(err, client.ErrUnimplemented) {
		return fmt.Errorf("%s: the server does not support recursive watches (ZooKeeper 3.6 and later): %w", p.Root, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		// ctx may have ended.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		w.Remove(last) //nolint:errcheck // it ends with the session otherwise
	}()
	fmt.Fprintf(c.Err, "watching %s\n", p.Root)
	for n := int64(0); limit == 0 || n < limit; n++ {
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); errors.Is(cause, diagnose.ErrNoConnection) {
				return fmt.Errorf("the watch on %s: %w", p.Root, cause)
			}
			return nil // an interrupt ends watch normally
		case <-timer:
			return nil
		case e, ok := <-w.Events():
			if !ok {
				return fmt.Errorf("the watch on %s ended: %w", p.Root, w.Err())
			}
			if err := c.showEvent(ctx, p.Client, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Call) showEvent(ctx context.Context, zk *client.Client, e client.Event) error {
	s := seen{Time: isoTime(time.Now().UnixMilli()), Event: e.Type.String(), Path: e.Path}
	if e.Zxid > 0 {
		s.Zxid = hexID(e.Zxid)
	}
	text := ""
	if c.Has("data") && (e.Type == client.EventNodeCreated || e.Type == client.EventNodeDataChanged) {
		switch data, st, err := zk.Get(ctx, e.Path); {
		case errors.Is(err, client.ErrNoNode):
			text = "  (gone again)"
		case err != nil:
			s.Error = err.Error()
			text = "  (" + s.Error + ")"
		default:
			d := string(data)
			s.Data, s.Version = &d, &st.Version
			text = fmt.Sprintf("  version %d %s", st.Version, shortData(data, 80))
		}
	}
	if e.Type == client.EventResync {
		text = "  the connection was interrupted: events may be missing here"
	}
	return c.Emit(s, func(w io.Writer) {
		fmt.Fprintf(w, "%s  %-16s %-12s %s%s\n", s.Time, s.Event, s.Zxid, s.Path, text)
	})
}
