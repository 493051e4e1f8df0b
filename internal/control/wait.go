package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/zkgo/zkgo/server/zktest"
)

const (
	defaultWait = 30 * time.Second
	longestWait = 10 * time.Minute

	// Pauses between two checks.
	firstPause   = 200 * time.Microsecond
	longestPause = 10 * time.Millisecond
)

// waitFor names the condition to wait for: exactly one of the fields, except for the
// last three, which refine others.
type waitFor struct {
	Exists       string    `json:"exists"`
	Gone         string    `json:"gone"`
	Watch        string    `json:"watch"`
	Connected    sessionID `json:"connected"`
	Disconnected sessionID `json:"disconnected"`
	Expired      sessionID `json:"expired"`
	Fault        string    `json:"fault"`
	Requests     *match    `json:"requests"`
	Serving      bool      `json:"serving"`

	Kinds   []zktest.WatchKind `json:"kinds"` // for watch
	Count   int                `json:"count"` // for requests: at least this many
	Timeout *duration          `json:"timeout"`
}

func postWait(c *call) (any, error) {
	var in waitFor
	if err := c.body(&in); err != nil {
		return nil, err
	}
	limit := defaultWait
	if in.Timeout != nil {
		limit = time.Duration(*in.Timeout)
	}
	if limit > longestWait {
		return nil, bad("timeout %v is longer than %v", limit, longestWait)
	}
	what, ok, err := in.condition(c)
	if err != nil {
		return nil, err
	}
	return none{}, c.await(what, limit, ok)
}

// await polls ok until it returns true or the limit has passed.
func (c *call) await(what string, limit time.Duration, ok func() (bool, error)) error {
	pause := firstPause
	for end := time.Now().Add(limit); ; pause = min(2*pause, longestPause) {
		if done, err := ok(); done || err != nil {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return &refusal{kind: timeout, text: fmt.Sprintf("not within %v: %s", limit, what)}
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-timer.C:
		case <-c.r.Context().Done():
		case <-c.closing:
		}
		timer.Stop()
		if c.r.Context().Err() != nil || isClosed(c.closing) {
			return &refusal{kind: timeout, text: "the wait was cancelled: " + what}
		}
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// candidate is one condition that the caller may wait for.
type candidate struct {
	asked bool
	what  string
	ok    func() (bool, error)
}

// condition returns the requested condition as a description and as a function.
func (w *waitFor) condition(c *call) (string, func() (bool, error), error) {
	var found []candidate
	for _, one := range append(w.nodes(c), w.others(c)...) {
		if one.asked {
			found = append(found, one)
		}
	}
	switch {
	case len(found) != 1:
		return "", nil, bad("%d conditions are given: want one of exists, gone, watch, connected, disconnected, expired, fault, requests, serving", len(found))
	case w.Kinds != nil && w.Watch == "":
		return "", nil, bad("kinds belongs to watch")
	case w.Count != 0 && w.Requests == nil:
		return "", nil, bad("count belongs to requests")
	}
	for field, path := range map[string]string{"exists": w.Exists, "gone": w.Gone, "watch": w.Watch} {
		if path != "" {
			if err := checkPath(field, path); err != nil {
				return "", nil, err
			}
		}
	}
	for _, k := range w.Kinds {
		if all := []zktest.WatchKind{zktest.DataWatch, zktest.ChildWatch, zktest.PersistentWatch, zktest.PersistentRecursiveWatch}; !slices.Contains(all, k) {
			return "", nil, bad("unknown kind %q: want one of %q", k, all)
		}
	}
	_, err := found[0].ok() // the first check validates the remaining fields
	return found[0].what, found[0].ok, err
}

// nodes returns the conditions about znodes.
func (w *waitFor) nodes(c *call) []candidate {
	exists := func(path string, want bool) func() (bool, error) {
		return func() (bool, error) {
			s, err := c.one()
			return err == nil && s.Exists(path) == want, err
		}
	}
	return []candidate{
		{w.Exists != "", w.Exists + " exists", exists(w.Exists, true)},
		{w.Gone != "", w.Gone + " is gone", exists(w.Gone, false)},
		{w.Watch != "", "a watch of " + w.Watch, func() (bool, error) {
			list, err := c.watches()
			return slices.ContainsFunc(list, func(o watch) bool {
				return o.Path == w.Watch && (len(w.Kinds) == 0 || slices.Contains(w.Kinds, o.Kind))
			}), err
		}},
	}
}

// others returns the conditions about clients and servers.
func (w *waitFor) others(c *call) []candidate {
	connected := func(id sessionID, want bool) func() (bool, error) {
		return func() (bool, error) {
			list, err := c.sessions()
			return slices.ContainsFunc(list, func(s session) bool { return s.ID == id && s.Connected }) == want, err
		}
	}
	return []candidate{
		{w.Connected != 0, "session " + w.Connected.String() + " is connected", connected(w.Connected, true)},
		{w.Disconnected != 0, "session " + w.Disconnected.String() + " is not connected", connected(w.Disconnected, false)},
		{w.Expired != 0, "session " + w.Expired.String() + " has ended", func() (bool, error) {
			list, err := c.sessions()
			return !slices.ContainsFunc(list, func(s session) bool { return s.ID == w.Expired }), err
		}},
		{w.Fault != "", "fault " + w.Fault + " happens", func() (bool, error) {
			f, err := c.fault(w.Fault)
			return f.Happened, err
		}},
		{w.Requests != nil, "the requests come", func() (bool, error) {
			servers, err := c.some()
			n := 0
			for _, s := range servers {
				if err == nil {
					n += s.Requests(w.Requests.zktest(0))
				}
			}
			return n >= max(w.Count, 1), err
		}},
		{w.Serving, "all servers serve", func() (bool, error) { return c.allServe(), nil }},
	}
}
